// Any bytes are a template or an Error, and any template renders or gives an Error, within its limits. What comes
// before the first byte 0 is the template, what comes after it the variables, as JSON.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "ggmlx/core/error.h"
#include "src/chat/template.h"

namespace {

using nlohmann::ordered_json;

const ordered_json& usual_variables() {
    static const ordered_json variables = ordered_json::parse(
        R"({"messages": [{"role": "system", "content": "S\n"}, {"role": "user", "content": "Grüße <|x|>"},
            {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
            {"role": "tool", "content": [{"type": "text", "text": "4"}]}], "tools": [{"type": "function", "function":
            {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}}}],
            "add_generation_prompt": true, "bos_token": "<s>", "s": "text", "n": 3, "d": {"k": "v"}, "l": [3, 1, 2]})");
    return variables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const size_t zero = bytes.find('\0');
    ordered_json variables = usual_variables();
    if (zero != bytes.npos) {
        ordered_json given = ordered_json::parse(bytes.substr(zero + 1), nullptr, false);
        if (given.is_object()) variables = std::move(given);
    }
    llm::RenderOptions options;
    options.now = std::tm{};
    options.mutable_lists = size % 2 == 1;
    options.limits = {.max_steps = 100'000, .max_memory = 8 << 20, .max_output = 1 << 20, .max_depth = 800};
    try {
        const auto chat_template = llm::ChatTemplate::parse(bytes.substr(0, zero), "fuzz");
        const llm::Prompt prompt = chat_template.render(variables, options);
        size_t begin = 0;
        for (const llm::Run& run : prompt.runs) {
            if (run.end <= begin) std::abort();
            begin = run.end;
        }
        if (begin != prompt.text.size()) std::abort();
    } catch (const ggmlx::Error&) {
    }
    return 0;
}
