#include "tools/chat/template_flags.h"

#include <fmt/core.h>

#include "tools/chat_source.h"
#include "tools/text_input.h"

namespace cli {

void TemplateFlags::add_to(Args& args) {
    args.option("--chat-template", text, "JINJA", "a chat template in place of the model's, as text");
    args.option("--chat-template-file", file, "FILE", "the same from a file");
    args.option("--chat-template-kwargs", variables, "JSON",
                "more variables for the template, as an object: '{\"enable_thinking\": false}'");
    args.flag("-no-cnv,--no-conversation", none, "no template: what is typed is continued as it stands");
    args.choice("--reasoning-format", reasoning_format, {"auto", "none", "deepseek"},
                "none: show thoughts as the model writes them; else apart from the answer (auto)");
    args.option("--reasoning-effort", reasoning_effort, "LEVEL",
                "the template's reasoning_effort: low, medium, high … as the model knows them");
    args.option("--reasoning-budget", reasoning_budget, {-1, 0}, "0: no thoughts, where the template can say so");
}

std::shared_ptr<const llm::ChatFormat> TemplateFlags::format(const llm::Model& model) const {
    if (!text.empty() && !file.empty()) throw UsageError("give one of --chat-template and --chat-template-file");
    if (none) return nullptr;
    llm::ChatFiles files = chat_files(model.file());
    std::string name = model.file().path();
    if (!text.empty() || !file.empty()) {
        name = file.empty() ? "--chat-template" : file;
        files.chat_template = file.empty() ? text : read_text(file);
        files.chat_template_json.clear();
    }
    if (!llm::has_chat_template(files)) return nullptr;
    return std::make_shared<llm::ChatFormat>(llm::ChatFormat::from_files(files, name));
}

nlohmann::ordered_json TemplateFlags::template_variables() const {
    auto json = nlohmann::ordered_json::object();
    if (!variables.empty()) json = nlohmann::ordered_json::parse(variables, nullptr, false);
    if (!json.is_object()) throw UsageError("--chat-template-kwargs: this is no JSON object: " + variables);
    if (!reasoning_effort.empty()) json["reasoning_effort"] = reasoning_effort;
    if (reasoning_budget == 0) json["enable_thinking"] = json["thinking"] = false;  // Qwen and GLM; DeepSeek
    return json;
}

std::optional<llm::ReasoningMarkers> TemplateFlags::markers(const llm::ChatFormat* format) const {
    if (reasoning_format == "none" || format == nullptr) return std::nullopt;
    return llm::reasoning_markers(format->chosen({}).source());
}

}  // namespace cli
