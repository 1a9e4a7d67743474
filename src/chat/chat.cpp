#include "src/chat/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ggmlx/core/error.h"
#include "ggmlx/core/suggest.h"
#include "src/chat/continue_message.h"
#include "src/chat/messages.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::ordered_json;

constexpr std::array kTokenNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};

ordered_json parse_object(const std::string& text, const std::string& name, const char* file) {
    if (text.empty()) return ordered_json::object();
    ordered_json json = ordered_json::parse(text, nullptr, false);
    require(json.is_object(), ErrorKind::CorruptFile, "{}: {} is no JSON object", name, file);
    return json;
}

/// A token is a string or {"content": …}; nothing for null and for what is missing.
std::optional<std::string> token_text(const ordered_json& config, const std::string& key) {
    const auto found = config.find(key);
    if (found == config.end()) return std::nullopt;
    if (found->is_string()) return found->get<std::string>();
    if (!found->is_object()) return std::nullopt;
    const auto content = found->find("content");
    return content != found->end() && content->is_string() ? std::optional(content->get<std::string>()) : std::nullopt;
}

ordered_json special_tokens_of(const ordered_json& config, const ordered_json& map) {
    ordered_json tokens = ordered_json::object();
    for (const char* name : kTokenNames) {
        auto text = token_text(config, name);
        if (!text) text = token_text(map, name);
        if (text) tokens[name] = *text;
    }
    return tokens;
}

using Sources = std::vector<std::pair<std::string, std::string>>;

/// A template, or a list of named ones.
void add_sources(const ordered_json& chat_template, const std::string& name, Sources& sources) {
    if (chat_template.is_string()) sources.emplace_back("default", chat_template.get<std::string>());
    if (!chat_template.is_array()) return;
    for (const ordered_json& entry : chat_template) {
        const bool good = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                          entry.contains("template") && entry["template"].is_string();
        require(good, ErrorKind::CorruptFile, "{}: an entry of chat_template has no name or no template", name);
        sources.emplace_back(entry["name"].get<std::string>(), entry["template"].get<std::string>());
    }
}

/// A file of its own wins over tokenizer_config.json.
Sources sources_of(const ChatFiles& files, const ordered_json& config, const std::string& name) {
    Sources sources;
    const ordered_json own = parse_object(files.chat_template_json, name, "chat_template.json");
    if (config.contains("chat_template")) add_sources(config["chat_template"], name, sources);
    if (sources.empty() && own.contains("chat_template")) add_sources(own["chat_template"], name, sources);
    if (files.chat_template.empty()) return sources;
    std::erase_if(sources, [](const auto& source) { return source.first == "default"; });
    sources.emplace_back("default", files.chat_template);
    return sources;
}

}  // namespace

ChatFormat ChatFormat::from_template(std::string_view source, const std::string& name, ordered_json special_tokens) {
    ChatFormat format;
    format.templates_.emplace_back("default", ChatTemplate::parse(source, name));
    format.special_tokens_ = std::move(special_tokens);
    return format;
}

ChatFormat ChatFormat::from_files(const ChatFiles& files, const std::string& name) {
    const ordered_json config = parse_object(files.tokenizer_config, name, "tokenizer_config.json");
    const Sources sources = sources_of(files, config, name);
    require(!sources.empty(), ErrorKind::Unsupported,
            "{} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)", name);
    ChatFormat format;
    for (const auto& [key, source] : sources) {
        const std::string full = sources.size() == 1 ? name : name + " (template \"" + key + "\")";
        format.templates_.emplace_back(key, ChatTemplate::parse(source, full));
    }
    format.special_tokens_ =
        special_tokens_of(config, parse_object(files.special_tokens_map, name, "special_tokens_map.json"));
    return format;
}

bool has_chat_template(const ChatFiles& files) {
    if (!files.chat_template.empty()) return true;
    const auto named = [](const std::string& text) {
        const ordered_json json = ordered_json::parse(text, nullptr, false);
        return json.is_object() && json.contains("chat_template") && !json["chat_template"].empty();
    };
    return named(files.tokenizer_config) || named(files.chat_template_json);
}

std::vector<std::string> ChatFormat::template_names() const {
    std::vector<std::string> names;
    for (const auto& [name, chat_template] : templates_) names.push_back(name);
    return names;
}

const ChatTemplate& ChatFormat::chosen(const ChatRequest& request) const {
    const auto find = [&](const std::string& name) {
        const auto found =
            std::find_if(templates_.begin(), templates_.end(), [&](const auto& entry) { return entry.first == name; });
        return found == templates_.end() ? nullptr : &found->second;
    };
    if (!request.template_name.empty()) {
        if (const ChatTemplate* found = find(request.template_name)) return *found;
        fail(ErrorKind::InvalidArgument, "there is no template \"{}\"{}", request.template_name,
             ggmlx::did_you_mean(request.template_name, template_names()));
    }
    const bool tools = request.tools.is_array() && !request.tools.empty();
    if (const ChatTemplate* found = tools ? find("tool_use") : nullptr) return *found;
    if (const ChatTemplate* found = find("default")) return *found;
    if (templates_.size() == 1) return templates_.front().second;
    fail(ErrorKind::InvalidArgument, "the model has several chat templates and none is the default; name one of: {}",
         fmt::join(template_names(), ", "));
}

Prompt ChatFormat::prompt(const ChatRequest& request, const RenderOptions& options) const {
    require(request.variables.is_object(), ErrorKind::InvalidArgument, "the template's variables must be an object");
    require(!request.continue_final_message || !request.add_generation_prompt, ErrorKind::InvalidArgument,
            "continue_final_message and add_generation_prompt exclude each other");
    for (const auto* list : {&request.tools, &request.documents})
        require(list->is_null() || list->is_array(), ErrorKind::InvalidArgument, "\"{}\" must be a list",
                list == &request.tools ? "tools" : "documents");
    const ChatTemplate& chat_template = chosen(request);
    ordered_json variables = request.variables;
    variables["messages"] = normalize_messages(request.messages, chat_template, special_tokens_);
    variables["tools"] = request.tools.empty() ? ordered_json() : request.tools;
    variables["documents"] = request.documents;
    variables["add_generation_prompt"] = request.add_generation_prompt;
    ordered_json trusted = special_tokens_;
    for (const auto& [name, value] : request.variables.items()) trusted.erase(name);
    if (!request.continue_final_message) return chat_template.render(variables, trusted, options);
    const std::string text = mark_final_message(variables["messages"]);
    return cut_at_mark(chat_template.render(variables, trusted, options), text);
}

}  // namespace llm
