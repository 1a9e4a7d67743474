// Any bytes are a safetensors file or an Error, and every tensor of a file lies within it.

#include <cstdint>
#include <cstdlib>
#include <span>

#include "convert/safetensors.h"
#include "ggmlx/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    try {
        const auto file = convert::SafetensorsFile::from_bytes(bytes, "fuzz.safetensors");
        uint64_t total = 0;
        for (const auto& tensor : file.tensors()) {
            if (tensor.offset + tensor.size_bytes > size) std::abort();
            if (static_cast<uint64_t>(tensor.n_elements()) * static_cast<uint64_t>(element_bytes(tensor.type)) !=
                file.data(tensor).size())
                std::abort();
            if (file.find(tensor.name) != &tensor) std::abort();
            total += tensor.size_bytes;
        }
        if (total > size) std::abort();
    } catch (const ggmlx::Error&) {
    }
    return 0;
}
