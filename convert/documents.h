#pragma once
// The documents of a model file: the checkpoint's own files, verbatim, and quantization.json, which says how the file
// came about.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convert/checkpoint.h"
#include "convert/recipe.h"
#include "convert/report.h"
#include "ggmlx/file/writer.h"

namespace convert {

/// config.json, generation_config.json, tokenizer.json, tokenizer_config.json, special_tokens_map.json and
/// chat_template.jinja, as far as they are there, after add_chat_template; a tokenizer that comes in another form is
/// made a tokenizer.json. Throws corrupt_file without config.json.
std::vector<ggmlx::DocumentToWrite> collect_documents(const Checkpoint& checkpoint);

/// A chat template that lies in tokenizer_config.json becomes a document of its own, chat_template.jinja, so that there
/// is one place to look for it.
void add_chat_template(std::vector<ggmlx::DocumentToWrite>& documents);

const std::string* find_document(const std::vector<ggmlx::DocumentToWrite>& documents, std::string_view name);

/// The default template in tokenizer_config.json: a string, or the one called "default" of a list. Empty if there is
/// none. Throws corrupt_file for malformed JSON.
std::string chat_template_of(std::string_view tokenizer_config_json);

/// Throws corrupt_file if the tokenizer gives out ids that the embedding has no row for. Returns notes for the user.
std::vector<std::string> check_tokenizer(const std::vector<ggmlx::DocumentToWrite>& documents, int64_t n_vocab);

/// quantization.json: tool, recipe, and per type and fallback what came of it.
nlohmann::ordered_json describe_recipe(const Recipe& recipe, const std::string& tool_version, const Report& report);

}  // namespace convert
