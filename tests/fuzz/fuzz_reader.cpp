// Any bytes give a ModelFile or an Error, and everything that a ModelFile offers can be read or refused.
// The digests of the structure are recomputed first, or no changed byte would get past them.

#include <cstring>
#include <vector>

#include "ggmlx/core/error.h"
#include "ggmlx/file/model_bytes.h"
#include "ggmlx/file/reader.h"

namespace {

using namespace ggmlx;

/// Memory that a reader of a compressed tensor would have to bring; more is left alone here.
constexpr uint64_t kLargestTensor = 64 << 20;

template <class F>
void unless_refused(F&& action) {
    try {
        action();
    } catch (const Error&) {
    }
}

void read_all(const ModelFile& file) {
    for (const std::string& name : file.document_names()) unless_refused([&] { (void)file.document(name); });
    for (const StoredTensor& tensor : file.tensors()) {
        if (tensor.raw_bytes > kLargestTensor) continue;
        unless_refused([&] { (void)file.compute_checksum(tensor); });
        unless_refused([&] {
            std::vector<std::byte> data(tensor.raw_bytes);
            file.read(tensor, data);
        });
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<std::byte> bytes(size);
    if (size) std::memcpy(bytes.data(), data, size);
    test::reseal(bytes);
    unless_refused([&] { read_all(ModelFile::from_bytes(bytes, "fuzz.ggmx")); });
    return 0;
}
