// ggmlx template: sources, forms of the conversation, exit codes.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program.h"
#include "tests/tools/in_folder.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const std::string kTemplates = GGMLX_TEST_DATA "/chat-templates/";
const std::string kStoriesFolder = GGMLX_TEST_DATA "/stories260k";

class TemplateCommand : public InFolder {
  protected:
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return (folder_ / name).string();
    }
};

TEST_F(TemplateCommand, PrintsThePromptOfEveryGolden) {
    std::ifstream in(kTemplates + "golden-renders.json");
    const ordered_json goldens = ordered_json::parse(in);
    const ordered_json& outputs = goldens["renders"]["Qwen-Qwen3-0.6B.jinja"]["outputs"];
    for (const auto& [name, expected] : outputs.items()) {
        const std::string messages = file("m.json", goldens["cases"][name].dump());
        const ProgramRun run = run_ggmlx({"template", kTemplates + "Qwen-Qwen3-0.6B.jinja", "--messages", messages});
        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(run.out, expected.get<std::string>()) << name;
    }
}

TEST_F(TemplateCommand, ReadsFoldersConfigsAndModels) {
    fs::copy(kStoriesFolder, folder_ / "model", fs::copy_options::recursive);
    std::ifstream in(kStoriesFolder + "/tokenizer_config.json");
    ordered_json config = ordered_json::parse(in);
    config["chat_template"] = "{{ bos_token }}{{ messages[0].content }}|{{ x }}";
    config["bos_token"] = "<s>";
    fs::remove(path("model/tokenizer_config.json"));
    const std::string config_file = file("model/tokenizer_config.json", config.dump());
    const std::string messages = file("m.json", R"([{"role": "user", "content": "hi"}])");
    ASSERT_EQ(run_ggmlx({"convert", path("model"), "-o", path("m.ggmx"), "-q"}).exit_code, 0);
    for (const std::string& source : {path("model"), config_file, path("m.ggmx")}) {
        const ProgramRun run =
            run_ggmlx({"template", source, "--messages", messages, "--kwargs", R"({"x": [1, "a"]})"});
        EXPECT_EQ(run.out, "<s>hi|[1, 'a']") << source << run.err;
    }
}

TEST_F(TemplateCommand, JsonTellsWhoWroteWhat) {
    const std::string source = file("t.jinja", "<{{ messages[0].content }}>");
    const std::string messages = file("m.json", R"({"messages": [{"role": "user", "content": "hi"}]})");
    const ProgramRun run = run_ggmlx({"template", source, "--messages", messages, "--json"});
    EXPECT_EQ(ordered_json::parse(run.out),
              ordered_json::parse(R"({"prompt": "<hi>", "segments": [{"origin": "template", "text": "<"},
                  {"origin": "input", "text": "hi"}, {"origin": "template", "text": ">"}]})"));
}

TEST_F(TemplateCommand, TheDateCanBeFixed) {
    const std::string source = file("t.jinja", "{{ strftime_now('%d %b %Y') }}");
    const std::string messages = file("m.json", R"([{"role": "user", "content": "hi"}])");
    EXPECT_EQ(run_ggmlx({"template", source, "--messages", messages, "--date", "2026-01-15"}).out, "15 Jan 2026");
    EXPECT_EQ(run_ggmlx({"template", source, "--messages", messages, "--date", "15.1.2026"}).exit_code, 2);
}

TEST_F(TemplateCommand, FailuresAreExplained) {
    const std::string good = file("t.jinja", "\n{{ raise_exception('No system role!') }}");
    const std::string messages = file("m.json", R"([{"role": "user", "content": "hi"}])");
    const auto expect = [](const ProgramRun& run, int code, const std::string& part) {
        EXPECT_EQ(run.exit_code, code) << run.err;
        EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
        EXPECT_EQ(run.out, "");
    };
    expect(run_ggmlx({"template", good, "--messages", messages}), 1, "t.jinja:2: No system role!");
    expect(run_ggmlx({"template", good}), 2, "--messages");
    expect(run_ggmlx({"template", good, "--messages", messages, "--kwargs", "[]"}), 2, "--kwargs");
    expect(run_ggmlx({"template", kStoriesFolder, "--messages", messages}), 1, "no chat template");
    expect(run_ggmlx({"template", path("nosuch.jinja"), "--messages", messages}), 1, "nosuch.jinja");
    expect(run_ggmlx({"template", good, "--messages", path("nosuch.json")}), 1, "nosuch.json");
    expect(run_ggmlx({"template", good, "--messages", file("x.json", "{")}), 1, "is no JSON");
    expect(run_ggmlx({"template", good, "--messages", file("x.json", "{}")}), 1, "\"messages\"");
}

}  // namespace
