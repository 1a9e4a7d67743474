#include "convert/documents.h"

#include <nlohmann/json.hpp>

#include "convert/tokenizer/files.h"
#include "convert/tokenizer/info.h"
#include "ggmlx/core/error.h"

namespace convert {

using ggmlx::DocumentToWrite;
using ggmlx::ErrorKind;
using nlohmann::json;
using nlohmann::ordered_json;

std::vector<DocumentToWrite> collect_documents(const Checkpoint& checkpoint) {
    constexpr std::string_view kNames[] = {"config.json",           "generation_config.json",  "tokenizer.json",
                                           "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"};
    std::vector<DocumentToWrite> documents;
    const auto read = [&](std::string_view name) { return checkpoint.document(name); };
    for (std::string_view name : kNames)
        if (auto text = name == "tokenizer.json" ? tokenizer_document(read) : read(name))
            documents.push_back({std::string(name), std::move(*text)});
    ggmlx::require(find_document(documents, "config.json"), ErrorKind::CorruptFile, "{} has no config.json",
                   checkpoint.folder());
    add_chat_template(documents);
    return documents;
}

void add_chat_template(std::vector<DocumentToWrite>& documents) {
    const std::string* tokenizer_config = find_document(documents, "tokenizer_config.json");
    if (tokenizer_config && !find_document(documents, "chat_template.jinja"))
        if (std::string chat_template = chat_template_of(*tokenizer_config); !chat_template.empty())
            documents.push_back({"chat_template.jinja", std::move(chat_template)});
}

const std::string* find_document(const std::vector<DocumentToWrite>& documents, std::string_view name) {
    for (const DocumentToWrite& document : documents)
        if (document.name == name) return &document.text;
    return nullptr;
}

std::string chat_template_of(std::string_view tokenizer_config_json) {
    json root;
    try {
        root = json::parse(tokenizer_config_json);
    } catch (const json::exception& error) {
        ggmlx::fail(ErrorKind::CorruptFile, "tokenizer_config.json is no valid JSON: {}", error.what());
    }
    const json found = root.is_object() ? root.value("chat_template", json()) : json();
    if (found.is_string()) return found.get<std::string>();
    if (found.is_array())
        for (const json& entry : found)
            if (entry.is_object() && entry.value("name", json()) == "default" && entry.contains("template") &&
                entry["template"].is_string())
                return entry["template"].get<std::string>();
    return "";
}

std::vector<std::string> check_tokenizer(const std::vector<DocumentToWrite>& documents, int64_t n_vocab) {
    const std::string* tokenizer = find_document(documents, "tokenizer.json");
    if (!tokenizer) return {"there is no tokenizer.json: the model will take token ids only, no text"};
    const TokenizerInfo info = tokenizer_info(*tokenizer);
    ggmlx::require(
        info.max_id < n_vocab, ErrorKind::CorruptFile,
        "tokenizer.json gives out ids up to {}, but the embedding has only {} rows (config.json: vocab_size)",
        info.max_id, n_vocab);
    if (info.n_tokens == n_vocab) return {};
    return {fmt::format("the tokenizer has {} tokens and the embedding {} rows; the other rows stay unused",
                        info.n_tokens, n_vocab)};
}

ordered_json describe_recipe(const Recipe& recipe, const std::string& tool_version, const Report& report) {
    ordered_json result = {{"tool", "ggmlx"}, {"tool_version", tool_version}, {"source_dtype", report.source_dtype}};
    auto type_or = [](const std::optional<ggmlx::DType>& type, std::string_view otherwise) {
        return std::string(type ? ggmlx::name(*type) : otherwise);
    };
    result["type"] = type_or(recipe.type, "as the source");
    if (recipe.output_type) result["output_type"] = type_or(recipe.output_type, "");
    if (recipe.embedding_type) result["embedding_type"] = type_or(recipe.embedding_type, "");
    result["rules"] = ordered_json::array();
    for (const TypeRule& rule : recipe.rules)
        result["rules"].push_back(fmt::format("{}={}", rule.pattern, ggmlx::name(rule.dtype)));
    result["types"] = ordered_json::object();
    for (const TypeTotals& row : report.summary.rows())
        result["types"][std::string(ggmlx::name(row.dtype))] = {{"tensors", row.n_tensors}, {"bytes", row.size_bytes}};
    result["fallbacks"] = ordered_json::object();
    for (const TensorReport& tensor : report.tensors)
        if (tensor.wanted != tensor.dtype) result["fallbacks"][tensor.name] = ggmlx::name(tensor.wanted);
    return result;
}

}  // namespace convert
