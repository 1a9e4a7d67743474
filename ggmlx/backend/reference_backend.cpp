#include "ggmlx/backend/reference_backend.h"

#include <cstring>

#include "ggmlx/backend/host_memory.h"
#include "ggmlx/reference/reference.h"

namespace ggmlx {
namespace {

class ReferenceBackend final : public Backend {
  public:
    explicit ReferenceBackend(std::string name) : name_(std::move(name)) {}

    const std::string& name() const override { return name_; }
    std::string description() const override { return "reference implementations, one thread"; }
    uint64_t free_bytes() const override { return free_host_bytes(); }
    bool supports(const Node&) const override { return true; }
    ProductKernels product_kernels(DType) const override { return {"reference", ""}; }
    size_t scratch_bytes(const Node&) const override { return 0; }
    std::shared_ptr<std::byte> alloc(size_t size_bytes) override { return alloc_host(name_, size_bytes); }
    void upload(std::byte* device, const void* host, size_t size_bytes) override {
        std::memcpy(device, host, size_bytes);
    }
    void download(void* host, const std::byte* device, size_t size_bytes) override {
        std::memcpy(host, device, size_bytes);
    }
    bool reads_host_memory() const override { return false; }
    void run(SegmentSource& source) override {
        for (auto calls = source.next(); !calls.empty(); calls = source.next())
            for (const OpCall* call : calls) run_reference(*call);
    }

  private:
    const std::string name_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(std::string name) {
    return std::make_unique<ReferenceBackend>(std::move(name));
}

}  // namespace ggmlx
