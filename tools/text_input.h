#pragma once
// What users give a model to read: text from an argument, a file or standard input, or token ids from a file.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/model.h"
#include "tools/args.h"

namespace cli {

/// A whole file, or standard input for "-". Throws io with the system's reason.
std::string read_text(const std::string& path);
bool stdin_is_terminal();

/// Token ids: a JSON array of whole numbers, or the I32 tensor `ids` of a .safetensors. Throws corrupt_file.
std::vector<llm::TokenId> read_ids(const std::string& path);

/// \n \t \r \e \\ \' \" \xHH and \0, as C has them; an unknown escape stays as it is.
std::string unescape(std::string_view text);

/// The flags -p, -f, --ids, -e and --no-bos, and what they give.
struct PromptFlags {
    std::string prompt, file, ids_file;
    bool escape = false;
    bool no_bos = false;

    void add_to(Args& args);
    /// The prompt's tokens: of --ids, else of the text of -p ("-": standard input), -f or, when it is not a terminal,
    /// standard input. Without any text: BOS alone. Throws UsageError if several are given, and when a model has no BOS
    /// to start from.
    std::vector<llm::TokenId> tokens(const llm::Model& model) const;

  private:
    std::optional<std::string> text() const;
};

}  // namespace cli
