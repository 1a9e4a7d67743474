#include "src/chat/template.h"

#include <nlohmann/json.hpp>

#include "src/chat/evaluator.h"
#include "src/chat/globals.h"
#include "src/chat/json_values.h"
#include "src/chat/parser.h"
#include "src/chat/syntax_error.h"
#include "src/tokenizer/utf8.h"

namespace llm {

using nlohmann::ordered_json;

struct ChatTemplate::Parsed {
    std::string name, source;
    jinja::Ast ast;
};

namespace {

std::tm local_time() {
    const std::time_t now = std::time(nullptr);
    std::tm result{};
    localtime_r(&now, &result);
    return result;
}

const ordered_json* member(const ordered_json& object, const std::string& key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? nullptr : &*found;
}

/// Messages, with what the assistant said apart from what others did.
jinja::Value messages_value(jinja::Runtime& runtime, const ordered_json& messages) {
    if (!messages.is_array()) return jinja::value_of(runtime, messages, Origin::Input);
    std::vector<jinja::Value> items;
    for (const ordered_json& message : messages) {
        const ordered_json* role = member(message, "role");
        const bool assistant = role && *role == "assistant";
        items.push_back(jinja::value_of(runtime, message, assistant ? Origin::Assistant : Origin::Input));
    }
    return runtime.list(std::move(items));
}

std::optional<jinja::Value> variable(jinja::Runtime& runtime, const std::string& name, const ordered_json& variables,
                                     const ordered_json& trusted) {
    if (const ordered_json* found = member(trusted, name)) return jinja::value_of(runtime, *found, Origin::Template);
    if (const ordered_json* found = member(variables, name))
        return name == "messages" ? messages_value(runtime, *found) : jinja::value_of(runtime, *found, Origin::Input);
    return jinja::global_function(runtime, name);
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
    auto parsed = std::make_shared<Parsed>();
    parsed->name = std::move(name);
    parsed->source = is_valid_utf8(source) ? std::string(source) : replace_invalid_utf8(source);
    parsed->ast = jinja::parse(parsed->source, parsed->name);
    return ChatTemplate(std::move(parsed));
}

Prompt ChatTemplate::render(const ordered_json& variables, const ordered_json& trusted,
                            const RenderOptions& options) const {
    jinja::Runtime runtime(options.limits, options.now ? *options.now : local_time(), options.mutable_lists);
    const jinja::Ast& ast = parsed_->ast;
    int line = 1;
    try {
        std::vector<std::optional<jinja::Value>> globals;
        for (const std::string& name : ast.names) globals.push_back(variable(runtime, name, variables, trusted));
        jinja::Evaluator evaluator(runtime, ast, globals);
        try {
            jinja::Text text = evaluator.run();
            if (text.runs.empty() && !text.bytes.empty()) text.runs.push_back({text.bytes.size(), Origin::Template});
            return {std::move(text.bytes), std::move(text.runs)};
        } catch (const ggmlx::Error&) {
            line = evaluator.line();
            throw;
        }
    } catch (const ggmlx::Error& error) {
        throw ggmlx::Error(error.kind(), jinja::place(parsed_->name, line) + error.what());
    }
}

Prompt ChatTemplate::render(const ordered_json& variables, const RenderOptions& options) const {
    return render(variables, ordered_json::object(), options);
}

const std::string& ChatTemplate::name() const { return parsed_->name; }
const std::string& ChatTemplate::source() const { return parsed_->source; }

}  // namespace llm
