// ggmlx template: the prompt that a conversation becomes.

#include <fmt/core.h>

#include "ggmlx/core/error.h"
#include "src/chat/chat.h"
#include "src/chat/date.h"
#include "tools/args.h"
#include "tools/chat_source.h"
#include "tools/commands/commands.h"
#include "tools/json_text.h"
#include "tools/text_input.h"

namespace cli {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::ordered_json;

bool boolean(const ordered_json& value, const std::string& name, const std::string& where) {
    require(value.is_boolean(), ErrorKind::InvalidArgument, "{}: \"{}\" must be true or false", where, name);
    return value.get<bool>();
}

/// Members with a meaning fill the request, all others are variables of the template.
void add_members(llm::ChatRequest& request, const ordered_json& members, const std::string& where) {
    for (const auto& [name, value] : members.items()) {
        if (name == "messages")
            request.messages = value;
        else if (name == "tools")
            request.tools = value;
        else if (name == "documents")
            request.documents = value;
        else if (name == "add_generation_prompt")
            request.add_generation_prompt = boolean(value, name, where);
        else if (name == "continue_final_message")
            request.continue_final_message = boolean(value, name, where);
        else if (name == "chat_template_kwargs" && value.is_object())
            request.variables.update(value);
        else
            request.variables[name] = value;
    }
}

ordered_json parse_json_text(const std::string& text, const std::string& where) {
    ordered_json json = ordered_json::parse(text, nullptr, false);
    require(!json.is_discarded(), ErrorKind::CorruptFile, "{} is no JSON", where);
    return json;
}

llm::ChatRequest read_request(const std::string& path, const std::string& kwargs) {
    llm::ChatRequest request;
    request.add_generation_prompt = false;
    const std::string where = path == "-" ? "standard input" : path;
    const ordered_json json = parse_json_text(read_text(path), where);
    if (json.is_array()) {
        request.messages = json;
    } else {
        require(json.is_object() && json.contains("messages"), ErrorKind::InvalidArgument,
                "{}: neither an object with \"messages\" nor a list of messages", where);
        add_members(request, json, where);
    }
    if (kwargs.empty()) return request;
    const ordered_json more = ordered_json::parse(kwargs, nullptr, false);
    if (!more.is_object()) throw UsageError("--kwargs must be a JSON object, such as '{\"enable_thinking\": false}'");
    add_members(request, more, "--kwargs");
    return request;
}

ordered_json segments(const llm::Prompt& prompt) {
    ordered_json result = ordered_json::array();
    size_t begin = 0;
    for (const llm::Run& run : prompt.runs) {
        result.push_back({{"origin", name(run.origin)}, {"text", prompt.text.substr(begin, run.end - begin)}});
        begin = run.end;
    }
    return result;
}

}  // namespace

int run_template(std::span<const std::string> arguments) {
    std::string source, messages, kwargs, date, name;
    bool mutable_lists = false;
    Common common;
    Args args("template", "Shows the prompt that a conversation becomes: the chat template's output, byte for byte.",
              "  ggmlx template model.ggmx --messages chat.json\n"
              "  ggmlx template ./Qwen3-0.6B --messages chat.json --kwargs '{\"enable_thinking\": false}'\n"
              "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | ggmlx template chat_template.jinja --messages -\n"
              "The file is a list of messages, or an object {\"messages\": [...], \"tools\": [...],\n"
              "\"add_generation_prompt\": true, ...}; other members are variables of the template.\n");
    args.model(source, "a .ggmx, a checkpoint folder, a tokenizer_config.json or a .jinja file");
    args.option("--messages", messages, "FILE", "the conversation as JSON; \"-\": standard input");
    args.option("--kwargs", kwargs, "JSON", "more variables, as an object; they win over the file's");
    args.option("--date", date, "YYYY-MM-DD", "the day that strftime_now tells (default: today)");
    args.option("--template-name", name, "NAME",
                "which one of several templates (default: tool_use with tools, default)");
    args.flag("--mutable-lists", mutable_lists, "allow list.append and the like, which transformers refuses");
    args.common(common);
    if (!args.parse(arguments)) return 0;
    if (messages.empty()) throw UsageError("no conversation: give --messages FILE.json");

    const llm::ChatFormat format = open_chat_format(source);
    llm::ChatRequest request = read_request(messages, kwargs);
    request.template_name = name;
    llm::RenderOptions options;
    options.mutable_lists = mutable_lists;
    if (!date.empty()) {
        try {
            options.now = llm::parse_date(date);
        } catch (const ggmlx::Error& error) {
            throw UsageError(fmt::format("--date: {}", error.what()));
        }
    }
    const llm::Prompt prompt = format.prompt(request, options);
    if (common.json)
        fmt::print("{}\n", json_line({{"prompt", prompt.text}, {"segments", segments(prompt)}}));
    else
        fmt::print("{}", prompt.text);
    return 0;
}

}  // namespace cli
