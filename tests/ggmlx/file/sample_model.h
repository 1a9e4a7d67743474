#pragma once
// A model with one tensor of everything that the format distinguishes, written by the real writer.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ggmlx/file/writer.h"

namespace ggmlx::test {

/// A path in the folder for temporary files that no other test process uses; what lies there is removed.
std::string fresh_path(const std::string& name);

std::vector<std::byte> read_bytes(const std::string& path);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);
bool exists(const std::string& path);
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Documents and tensors of the sample: plain and block types, ranks 1 to 4, experts with and without gaps.
std::vector<DocumentToWrite> sample_documents();
std::vector<TensorToWrite> sample_tensors();

/// A matrix per slice with values from a fixed seed, in its stored form.
std::vector<std::byte> sample_slice(const TensorToWrite& tensor, size_t size_bytes, unsigned seed);

/// Writes tensors filled with sample_slice (seed: 1000 * tensor + slice) and publishes PATH.
void write_model(const std::string& path, const std::vector<DocumentToWrite>& documents,
                 const std::vector<TensorToWrite>& tensors, bool compress);
/// The sample as bytes; written once.
const std::vector<std::byte>& sample_bytes(bool compress);

}  // namespace ggmlx::test
