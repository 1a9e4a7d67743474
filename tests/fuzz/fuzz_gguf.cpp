// Any bytes are a GGUF file or an Error, every tensor of a file lies within it, and what can be made of a file (config,
// tokenizer, values) is made or refused.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "convert/gguf/config.h"
#include "convert/gguf/matrix.h"
#include "convert/gguf/tokenizer.h"
#include "ggmlx/core/error.h"
#include "ggmlx/quant/quantize.h"

namespace {

using namespace convert;

/// Values that are decoded of one tensor; it lies in the file, so few bytes cannot ask for many.
constexpr int64_t kMostValues = 1 << 20;

template <class F>
void unless_refused(F&& action) {
    try {
        action();
    } catch (const ggmlx::Error&) {
    }
}

void read_tensor(const GgufFile& file, const GgufTensor& tensor) {
    const GgufMatrix matrix({&file, &tensor}, 0, 0);
    const int64_t n_values = matrix.n_out() * matrix.n_in();
    if (n_values > kMostValues) return;
    std::vector<float> values(static_cast<size_t>(n_values));
    matrix.read_rows(0, matrix.n_out(), values.data());
    std::vector<std::byte> stored(
        static_cast<size_t>(ggmlx::slice_bytes(*tensor.type->dtype, {matrix.n_out(), matrix.n_in()})));
    if (tensor.type->exact && stored.size() <= size_t{kMostValues} * 16)
        matrix.store(*tensor.type->dtype, stored, nullptr, 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    unless_refused([&] {
        const GgufFile file = GgufFile::from_bytes(bytes, "fuzz.gguf");
        uint64_t total = 0;
        for (const GgufTensor& tensor : file.tensors()) {
            if (tensor.offset > size || tensor.size_bytes > size - tensor.offset) std::abort();
            if (file.find(tensor.name) != &tensor) std::abort();
            total += tensor.size_bytes;
            unless_refused([&] { read_tensor(file, tensor); });
        }
        if (total > size) std::abort();
    });
    unless_refused([&] {
        std::vector<std::string> notes;
        const auto checkpoint = GgufCheckpoint::from_file(GgufFile::from_bytes(bytes, "fuzz.gguf"));
        unless_refused([&] { (void)gguf_config_json(checkpoint, notes); });
        unless_refused([&] { (void)gguf_tokenizer_json(checkpoint.metadata(), notes); });
        unless_refused([&] { (void)gguf_tokenizer_config_json(checkpoint.metadata()); });
        unless_refused([&] { (void)gguf_generation_config_json(checkpoint.metadata()); });
    });
    return 0;
}
