// The program itself: exit codes, messages, and the commands that make and look at model files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/program.h"
#include "tests/tools/in_folder.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kStories = GGMLX_TEST_DATA "/stories260k";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

class Commands : public InFolder {
  protected:
    std::string converted(const std::vector<std::string>& arguments = {}) {
        std::vector<std::string> all = {"convert", kStories, "-o", path("m.ggmx")};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const ProgramRun run = run_ggmlx(all);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return path("m.ggmx");
    }
};

/// Runs and expects exit code 2 with this in the message, and a hint to --help.
void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
    const ProgramRun run = run_ggmlx(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, "error: ") && contains(run.err, part) && contains(run.err, "--help")) << run.err;
    EXPECT_EQ(run.out, "");
}

/// Runs and expects exit code 1 with one line `error: …` that holds this.
void expect_failure(const std::vector<std::string>& arguments, const std::string& part) {
    const ProgramRun run = run_ggmlx(arguments);
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(run.err.starts_with("error: ") && contains(run.err, part)) << run.err;
}

TEST_F(Commands, HelpAndVersionAreResults) {
    const ProgramRun help = run_ggmlx({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const char* command : {"convert", "quantize", "inspect", "verify"}) {
        EXPECT_TRUE(contains(help.out, command)) << command;
        const ProgramRun own = run_ggmlx({command, "--help"});
        EXPECT_EQ(own.exit_code, 0);
        EXPECT_TRUE(contains(own.out, "Examples:") && contains(own.out, "-m,--model")) << own.out;
        EXPECT_EQ(run_ggmlx({"help", command}).out, own.out);
    }
    const ProgramRun version = run_ggmlx({"--version"});
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_TRUE(version.out.starts_with("ggmlx ")) << version.out;
}

TEST_F(Commands, WrongCommandLinesSayWhatToType) {
    EXPECT_EQ(run_ggmlx({}).exit_code, 2);
    expect_usage_error({"inspekt", "x"}, "inspect");
    expect_usage_error({"--nope"}, "--nope");
    expect_usage_error({"convert", kStories}, "-o");
    expect_usage_error({"convert", kStories, "-o", path("m.ggmx"), "--type", "q9"}, "q4_k");
    expect_usage_error({"convert", kStories, "-o", path("m.ggmx"), "--tensor-type", "blk.(=q8_0"}, "blk.(");
    expect_usage_error({"quantize", path("m.ggmx"), path("o.ggmx")}, "--type");
    expect_usage_error({"verify"}, "no model");
}

TEST_F(Commands, FailuresSayWhatIsWrongWithThePath) {
    expect_failure({"inspect", kStories}, "ggmlx convert");
    expect_failure({"verify", path("nosuch.ggmx")}, "nosuch.ggmx");
    expect_failure({"convert", path("nosuch"), "-o", path("m.ggmx")}, "does not exist");
    const std::string model = converted();
    expect_failure({"convert", model, "-o", path("n.ggmx")}, "ggmlx quantize");
    expect_failure({"convert", kStories, "-o", kStories}, "is a folder");
    expect_failure({"convert", kStories, "-o", path("no/such/folder/m.ggmx")}, "no/such/folder");
    expect_failure({"quantize", kStories, path("q.ggmx"), "q8_0"}, "ggmlx convert");
}

TEST_F(Commands, AFullOutputIsAnError) {
    const std::string model = converted();
    const std::string command =
        shell_quoted(GGMLX_PROGRAM) + " inspect " + shell_quoted(model) + " >/dev/full 2>/dev/null";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

TEST_F(Commands, ConvertShowsTypesAndFallbacks) {
    struct Case {
        const char *type, *stored;
        bool falls_back;
    };
    for (const Case& c : {Case{"f32", "f32", false}, Case{"q8_0", "q8_0", false}, Case{"Q4_0", "q4_0", false},
                          Case{"mxfp4", "mxfp4", false}, Case{"q4_k_m", "q4_1", true}}) {
        const ProgramRun run = run_ggmlx({"convert", kStories, "-o", path("m.ggmx"), "--type", c.type});
        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_TRUE(contains(run.out, c.stored)) << run.out;
        EXPECT_EQ(contains(run.out, "instead of q4_k"), c.falls_back) << run.out;
        EXPECT_EQ(run_ggmlx({"verify", path("m.ggmx")}).exit_code, 0);
    }
    EXPECT_EQ(run_ggmlx({"convert", kStories, "-o", path("n.ggmx"), "--type", "q4_k", "--strict-type"}).exit_code, 1);
    EXPECT_FALSE(fs::exists(path("n.ggmx")));
}

TEST_F(Commands, ConvertSpeaksJson) {
    const ProgramRun run =
        run_ggmlx({"convert", kStories, "-o", path("m.ggmx"), "--type", "q8_0", "--report", "--json", "-q"});
    const json result = json::parse(run.out);
    EXPECT_EQ(result["bytes"], fs::file_size(path("m.ggmx")));
    EXPECT_EQ(result["written"], true);
    EXPECT_EQ(result["tensors"].size(), 47u);
    EXPECT_GT(result["tensors"][0]["rmse"], 0.0);
    EXPECT_EQ(run.err, "");
    const json dry = json::parse(run_ggmlx({"convert", kStories, "--type", "q8_0", "--dry-run", "--json"}).out);
    EXPECT_EQ(dry["bytes"], result["bytes"]);
    EXPECT_EQ(dry["written"], false);
}

TEST_F(Commands, InspectDescribesTheModel) {
    const std::string model = converted({"--type", "q8_0"});
    const ProgramRun text = run_ggmlx({"inspect", model});
    for (const char* part : {"llama: 5 layers, 64 wide; 8 heads of 8, 4 for keys and values", "512 tokens", "260,032",
                             "BPE, 512 tokens", "q8_0"})
        EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
    const json all = json::parse(run_ggmlx({"inspect", "-m", model, "--tensors", "--documents", "--json"}).out);
    EXPECT_EQ(all["architecture"], "llama");
    EXPECT_EQ(all["parameters"], 260032);
    EXPECT_EQ(all["tensors"].size(), 47u);
    EXPECT_EQ(all["tensors"][0]["name"], "token_embd.weight");
    EXPECT_EQ(all["tensors"][0]["shape"], json({512, 64}));
    EXPECT_EQ(all["documents"]["tokenizer.json"], fs::file_size(kStories + "/tokenizer.json"));
    std::ifstream file(kStories + "/config.json");
    const std::string config{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(run_ggmlx({"inspect", model, "--document", "config.json"}).out, config);
}

TEST_F(Commands, VerifyNamesEveryDamagedTensor) {
    const std::string model = converted();
    EXPECT_TRUE(contains(run_ggmlx({"verify", model}).out, "ok: 47 tensors"));
    const json tensors = json::parse(run_ggmlx({"inspect", model, "--tensors", "--json"}).out)["tensors"];
    std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
    for (size_t i : {3u, 40u}) {
        file.seekp(tensors[i]["offset"].get<int64_t>() + 5);
        file.put('\x5a');
    }
    file.close();
    const ProgramRun run = run_ggmlx({"verify", model});
    EXPECT_EQ(run.exit_code, 1);
    for (size_t i : {3u, 40u}) EXPECT_TRUE(contains(run.out, tensors[i]["name"].get<std::string>())) << run.out;
    const json result = json::parse(run_ggmlx({"verify", model, "--json"}).out);
    EXPECT_EQ(result["ok"], false);
    EXPECT_EQ(result["damaged"].size(), 2u);
}

TEST_F(Commands, QuantizeTakesBothForms) {
    const std::string model = converted();
    EXPECT_EQ(run_ggmlx({"quantize", model, path("a.ggmx"), "q8_0"}).exit_code, 0);
    EXPECT_EQ(run_ggmlx({"quantize", model, "-o", path("b.ggmx"), "--type", "Q8_0"}).exit_code, 0);
    const ProgramRun again = run_ggmlx({"quantize", path("a.ggmx"), path("c.ggmx"), "q4_0"});
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_TRUE(contains(again.err, "--allow-requantize") && contains(again.err, "token_embd.weight: q8_0 -> q4_0"));
    const ProgramRun allowed =
        run_ggmlx({"quantize", path("a.ggmx"), path("c.ggmx"), "q4_0", "--allow-requantize", "--report"});
    EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
    EXPECT_TRUE(contains(allowed.out, "quantized a second time: token_embd.weight (q8_0 -> q4_0)")) << allowed.out;
    EXPECT_TRUE(contains(allowed.out, "rmse")) << allowed.out;
}

TEST_F(Commands, RulesSettleSingleTensors) {
    converted({"--type", "q4_0", "--tensor-type", "attn_v|ffn_down=q8_0", "--token-embedding-type", "f16"});
    const json tensors = json::parse(run_ggmlx({"inspect", path("m.ggmx"), "--tensors", "--json"}).out)["tensors"];
    for (const json& tensor : tensors) {
        const auto name = tensor["name"].get<std::string>();
        const std::string expected = contains(name, "norm")                                   ? "f32"
                                     : contains(name, "attn_v") || contains(name, "ffn_down") ? "q8_0"
                                     : name == "token_embd.weight"                            ? "f16"
                                                                                              : "q4_0";
        EXPECT_EQ(tensor["type"], expected) << name;
    }
    expect_failure({"convert", kStories, "-o", path("n.ggmx"), "--tensor-type", "ffn_doun=q8_0"}, "ffn_down");
}

TEST_F(Commands, InspectTellsAboutExperts) {
    const std::string fixture = GGMLX_TEST_DATA "/fixtures/deepseek_v3";
    ASSERT_EQ(run_ggmlx({"convert", fixture, "-o", path("m.ggmx")}).exit_code, 0);
    const ProgramRun text = run_ggmlx({"inspect", path("m.ggmx")});
    EXPECT_TRUE(contains(text.out, "latent keys and values of 32 + 8")) << text.out;
    EXPECT_TRUE(contains(text.out, "8 of 28 wide, 3 for each token, in 2 of 3 layers; shared expert of 28"))
        << text.out;
    const json config = json::parse(run_ggmlx({"inspect", path("m.ggmx"), "--json"}).out)["config"];
    EXPECT_EQ(config["n_expert"], 8);
    EXPECT_EQ(config["n_expert_used"], 3);
    EXPECT_EQ(config["n_ff_expert"], 28);
    EXPECT_EQ(config["n_expert_layers"], 2);
}

TEST_F(Commands, PlanWorksFromThePublishedConfigOfEveryMixture) {
    for (const char* model : {"Mixtral-8x7B-v0.1", "Qwen3-30B-A3B-FP8", "gpt-oss-20b", "DeepSeek-V3",
                              "Kimi-K2-Instruct", "GLM-4.5-Air", "MiniMax-M2.7"}) {
        const std::string config = std::string(GGMLX_TEST_DATA "/configs/") + model + "/config.json";
        const ProgramRun run =
            run_ggmlx({"plan", config, "--json", "-c", "4096", "-ot", "ffn_.*_exps\\.weight@0-3=ref0"});
        ASSERT_EQ(run.exit_code, 0) << run.err;
        const json plan = json::parse(run.out);
        EXPECT_GT(plan["parameters"], 20'000'000'000);
        EXPECT_GT(plan["config"]["n_expert"], plan["config"]["n_expert_used"]) << model;
        EXPECT_GT(plan["devices"][0]["expert_bytes"], plan["devices"][0]["dense_bytes"]) << model;
        EXPECT_GT(plan["devices"][1]["expert_bytes"], 0) << model;
        EXPECT_EQ(plan["devices"][1]["dense_bytes"], 0) << model;
    }
}

}  // namespace
