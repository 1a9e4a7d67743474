// Templates of real models, rendered by Python's jinja2 and by us.

#include "tests/src/chat/support.h"

namespace llm::test {
namespace {

/// The text, or "error" with what the template said behind the type of Python's exception.
void expect_golden(const ChatTemplate& chat_template, const ordered_json& variables, const ordered_json& expected) {
    std::string text, error;
    try {
        text = chat_template.render(variables, on_date("2026-01-15")).text;
    } catch (const ggmlx::Error& e) {
        error = e.what();
    }
    if (expected.is_string()) {
        EXPECT_EQ(text, expected.get<std::string>()) << error;
        return;
    }
    const auto python = expected["error"].get<std::string>();  // "TemplateError: message"
    EXPECT_TRUE(error.ends_with(python.substr(python.find(": ") + 2))) << error << "\ninstead of " << python;
}

/// Renders all goldens of a folder; returns how many there were.
size_t check_folder(const std::string& folder, const auto& wanted) {
    const auto goldens = ordered_json::parse(read_file(folder + "golden-renders.json"));
    size_t n = 0;
    for (const auto& [file, renders] : goldens["renders"].items()) {
        if (!wanted(file)) continue;
        SCOPED_TRACE(file);
        const auto chat_template = ChatTemplate::parse(read_file(folder + file), file);
        for (const auto& [name, expected] : renders["outputs"].items()) {
            SCOPED_TRACE(name);
            ordered_json variables = goldens["cases"][name];
            variables["bos_token"] = renders["bos_token"];
            variables["eos_token"] = renders["eos_token"];
            expect_golden(chat_template, variables, expected);
            ++n;
        }
    }
    return n;
}

TEST(Goldens, FreelyLicensedTemplates) {
    EXPECT_EQ(check_folder(kTemplates, [](const std::string&) { return true; }), 19u * 7u);
}

TEST(Goldens, TemplatesOfLlamaAndGemma) {
    if (!shared_templates())
        GTEST_SKIP() << "no folder with templates under the Llama and Gemma licences: set GGMLX_SHARED_DATA, or put it "
                        "in ../shared/data";
    const auto licensed = [](const std::string& file) {
        return file.starts_with("google-") || file.starts_with("meta-llama-");
    };
    EXPECT_EQ(check_folder(*shared_templates(), licensed), 4u * 7u);
}

TEST(Goldens, ListMethodsWorkWhereAllowed) {
    const auto goldens = ordered_json::parse(read_file(kTemplates + "golden-renders.json"));
    const auto chat_template = ChatTemplate::parse(read_file(kTemplates + "Kimi-K2-Instruct.jinja"), "kimi");
    RenderOptions options;
    options.mutable_lists = true;
    const std::string text = chat_template.render(goldens["cases"]["tool_round_trip"], options).text;
    EXPECT_NE(text.find("functions.get_weather:0"), std::string::npos) << text;
}

}  // namespace
}  // namespace llm::test
