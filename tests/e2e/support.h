#pragma once
// What end-to-end tests share: models converted into a folder of their own, reference values, the real program.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/model.h"
#include "src/session/session.h"

namespace e2e {

/// A path below tests/data.
std::string data_path(const std::string& relative);

/// A folder that is removed with the object.
class TempFolder {
  public:
    TempFolder();
    ~TempFolder();
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

/// Converts tests/data/CHECKPOINT into `folder`, matrices in `type` (empty: the checkpoint's own); returns the model's
/// path.
std::string make_model(const TempFolder& folder, const std::string& checkpoint, const std::string& type = "");

/// The same for a checkpoint anywhere.
std::string make_model_from(const TempFolder& folder, const std::string& checkpoint_path, const std::string& type = "");

/// Tensors of a reference.safetensors.
std::vector<float> reference_floats(const std::string& checkpoint, const std::string& name);
std::vector<llm::TokenId> reference_ids(const std::string& checkpoint, const std::string& name);

/// The options that tests start from: f32 cache, a context of 256, no rules; one thread, which is fastest for models
/// this small.
llm::EngineOptions exact_options();
ggmlx::PlacementRule rule(const std::string& text);

/// Logits of the last n_outputs tokens of a prompt in a fresh engine and session.
std::vector<float> prompt_logits(const llm::Model& model, const llm::EngineOptions& options,
                                 std::span<const llm::TokenId> prompt, int64_t n_outputs);
/// n greedy tokens; the lowest id wins a tie. End-of-sequence tokens do not stop it.
std::vector<llm::TokenId> greedy(llm::Session& session, std::span<const llm::TokenId> prompt, int64_t n);

llm::TokenId largest(std::span<const float> logits);
float max_difference(std::span<const float> a, std::span<const float> b);
/// Equality of bits, so NaN equals itself and -0 differs from 0.
bool same_bits(std::span<const float> a, std::span<const float> b);

/// Instruction sets that this machine's CPU backend has.
std::vector<std::string> isas();

struct ProgramResult {
    int exit_code = 0;
    std::string out, err;
};
/// Runs the built program. stdin_text is its standard input.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& stdin_text = "");

}  // namespace e2e
