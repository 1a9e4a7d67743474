// The real program: what it prints, and that wrong uses end in one line of error and the right exit code.

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convert/safetensors.h"
#include "ggmlx/backend/cuda/cuda_backend.h"
#include "support.h"

namespace e2e {
namespace {

using nlohmann::json;

class Program : public testing::Test {
  protected:
    TempFolder folder_;
    const std::string stories_ = make_model(folder_, "stories260k");

    /// What a program said after the lines about processor, memory and kernels, which it prints once the model is
    /// loaded.
    static std::string after_start_lines(std::string err) {
        for (const char* start : {"cpu: ", "kernels: "})
            if (err.rfind(start, 0) == 0) err.erase(0, err.find('\n') + 1);
        return err;
    }
    /// A run that must fail: exit code and a piece of the message.
    void expect_error(const std::vector<std::string>& arguments, int code, const std::string& piece) {
        const auto r = run_program(arguments);
        EXPECT_EQ(r.exit_code, code) << r.err;
        EXPECT_EQ(after_start_lines(r.err).rfind("error: ", 0), 0u) << r.err;
        EXPECT_NE(r.err.find(piece), std::string::npos) << r.err;
        EXPECT_EQ(r.out, "");
    }
    static json parse(const ProgramResult& r) {
        EXPECT_EQ(r.exit_code, 0) << r.err;
        return json::parse(r.out, nullptr, false);
    }
};

TEST_F(Program, RunsFromBosWithoutAPrompt) {
    const json expected = json::parse(std::ifstream(data_path("stories260k/expected.json")));
    const json result = parse(run_program({"run", stories_, "--temp", "0", "-n", "256", "--ignore-eos", "--json"}));
    EXPECT_EQ(result["prompt_ids"], expected["greedy"]["prompt_ids"]);
    std::vector<int> ids = expected["greedy"]["ids"];
    ids.erase(ids.begin());
    EXPECT_EQ(result["ids"].get<std::vector<int>>(), ids);
    std::string text = expected["greedy"]["text"];
    text.erase(0, text.find_first_not_of(' '));  // the decoder drops the space at the start of a text
    EXPECT_EQ(result["text"], text);
    EXPECT_EQ(result["stop_reason"], "length");
    EXPECT_EQ(result["timings"]["predicted_n"], 256);
}

TEST_F(Program, ReadsThePromptFromWhereverItIsGiven) {
    const std::string text = "Once upon a time";
    const std::string file = folder_.file("prompt.txt"), ids_file = folder_.file("ids.json");
    std::ofstream(file) << text;
    const std::vector<std::string> common{"run", stories_, "--temp", "0", "-n", "20", "--json"};
    const auto with = [&](std::vector<std::string> more, const std::string& stdin_text = "") {
        std::vector<std::string> all = common;
        all.insert(all.end(), more.begin(), more.end());
        return parse(run_program(all, stdin_text));
    };
    const json plain = with({"-p", text});
    std::ofstream(ids_file) << plain["prompt_ids"];
    EXPECT_EQ(plain["prompt_ids"][0], 1);
    for (const json& other : {with({"-f", file}), with({"--ids", ids_file}), with({}, text), with({"-p", "-"}, text),
                              with({"-e", "-p", "Once\\x20upon a time"})}) {
        EXPECT_EQ(other["prompt_ids"], plain["prompt_ids"]);
        EXPECT_EQ(other["ids"], plain["ids"]);
        EXPECT_EQ(other["text"], plain["text"]);
    }
    const json without_bos = with({"--no-bos", "-p", text});
    EXPECT_EQ(without_bos["prompt_ids"].size() + 1, plain["prompt_ids"].size());
}

TEST_F(Program, StreamsPlainTextToStdoutAndNotesToStderr) {
    const auto r = run_program({"run", stories_, "-p", "Once upon a", "--temp", "0", "-n", "4"});
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_EQ(r.out, " time, there was");
    EXPECT_NE(r.err.find("answer: 4 tokens"), std::string::npos) << r.err;
    const auto quiet = run_program({"run", stories_, "-p", "Once upon a", "--temp", "0", "-n", "4", "-q"});
    EXPECT_EQ(quiet.err, "");
}

TEST_F(Program, DrawsTheSameTokensForTheSameSeed) {
    const auto draw = [&](const char* seed) {
        return parse(run_program({"run", stories_, "-s", seed, "-n", "40", "--temp", "1.5", "--json"}))["ids"];
    };
    EXPECT_EQ(draw("7"), draw("7"));
    EXPECT_NE(draw("7"), draw("8"));
}

TEST_F(Program, EvalSavesLogitsAndNamedValues) {
    const std::string ids = folder_.file("ids.json"), out = folder_.file("logits.safetensors"),
                      dump = folder_.file("dump.safetensors");
    std::ofstream(ids) << "[1, 403, 407, 261]";
    const json result = parse(run_program({"eval", stories_, "--ids", ids, "--last", "3", "--logits", out, "--dump",
                                           "blk.4.out=" + dump, "-ub", "2", "--json"}));
    EXPECT_EQ(result["n_tokens"], 4);
    EXPECT_EQ(result["top"].size(), 3u);
    const auto logits = convert::SafetensorsFile::open(out);
    ASSERT_NE(logits.find("logits"), nullptr);
    EXPECT_EQ(logits.find("logits")->shape, (std::vector<int64_t>{3, 512}));
    const auto values = convert::SafetensorsFile::open(dump);
    ASSERT_NE(values.find("blk.4.out"), nullptr);
    EXPECT_EQ(values.find("blk.4.out")->shape, (std::vector<int64_t>{4, 64}));

    const llm::Model model = llm::Model::open(stories_);
    llm::EngineOptions options = exact_options();
    options.max_outputs = 3;
    const auto expected = prompt_logits(model, options, std::vector<llm::TokenId>{1, 403, 407, 261}, 3);
    const auto bytes = logits.data(*logits.find("logits"));
    ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
}

TEST_F(Program, PerplexityPrintsTheGoldenNumbers) {
    const json expected = json::parse(std::ifstream(data_path("stories260k/expected.json")));
    for (const auto& entry : expected["perplexity"]) {
        const std::string ids = folder_.file("ids.json");
        std::ofstream(ids) << entry["ids"];
        const auto n = entry["ids"].size() - 1;
        const json r = parse(run_program({"perplexity", stories_, "--ids", ids, "-c", std::to_string(n), "--json"}));
        EXPECT_NEAR(r["nll"].get<double>(), entry["nll_per_token"].get<double>(), 2e-5);
        EXPECT_NEAR(r["perplexity"].get<double>(), entry["ppl"].get<double>(), 1e-3);
        EXPECT_EQ(r["tokens"], n);
    }
    const json& first = expected["perplexity"][0];
    const std::string text = folder_.file("text.txt");
    std::ofstream(text) << first["text"].get<std::string>();
    const json r = parse(run_program(
        {"perplexity", stories_, "-f", text, "--bos", "-c", std::to_string(first["ids"].size() - 1), "--json"}));
    EXPECT_NEAR(r["nll"].get<double>(), first["nll_per_token"].get<double>(), 2e-5);
}

TEST_F(Program, TokenizesFromAModelAFolderOrATokenizerFile) {
    const json expected = json::parse(std::ifstream(data_path("stories260k/expected.json")));
    for (const auto& c : expected["tokenizer_cases"]) {
        const std::string text = c["text"];
        for (const std::string& source : {stories_, data_path("stories260k"), data_path("stories260k/tokenizer.json"),
                                          data_path("gguf/stories260k.gguf")}) {
            const json r = parse(run_program({"tokenize", source, "--json"}, text));
            EXPECT_EQ(r["ids"], c["ids"]) << source << ": " << text;
        }
    }
    const auto r = run_program({"tokenize", stories_, "Zoo", "--ids-only"});
    EXPECT_EQ(json::parse(r.out), expected["tokenizer_cases"][1]["ids"]) << r.out;
}

TEST_F(Program, TokenizesLinesOfJsonBothWays) {
    const std::string source = data_path("stories260k/tokenizer.json");
    const auto lines = run_program({"tokenize", source, "--jsonl"}, "\"Zoo\"\n\"\"\n\"a\\nb \\u00e9\"\n");
    EXPECT_EQ(lines.exit_code, 0) << lines.err;
    const auto back = run_program({"tokenize", source, "--jsonl", "--decode", "--no-special"}, lines.out);
    EXPECT_EQ(back.out, "\"Zoo\"\n\"\"\n\"a\\nb é\"\n") << back.err;
    const auto pieces = run_program({"tokenize", source, "--jsonl", "--json", "--no-special"}, "\"Zoo\"\n");
    const json one = json::parse(pieces.out);
    EXPECT_EQ(one["ids"].size(), one["pieces"].size());
    EXPECT_NE(one["ids"][0], 1) << "no BOS";
    expect_error({"tokenize", source, "--jsonl", "text"}, 2, "only one");
    const auto wrong = run_program({"tokenize", source, "--jsonl"}, "\"a\"\n{}\n");
    EXPECT_EQ(wrong.exit_code, 1);
    EXPECT_NE(wrong.err.find("line 2"), std::string::npos) << wrong.err;
    EXPECT_NE(run_program({"tokenize", source, "--jsonl"}, "\"a\n").err.find("line 1"), std::string::npos);
    EXPECT_NE(run_program({"tokenize", source, "--jsonl", "--decode"}, "[1, -2]\n").err.find("-2"), std::string::npos);
}

TEST_F(Program, DecodesIds) {
    const std::string source = data_path("stories260k/tokenizer.json");
    const auto ids = run_program({"tokenize", source, "Once upon a time", "--ids-only"}).out;
    EXPECT_EQ(run_program({"tokenize", source, "--decode", ids, "--no-special"}).out, "Once upon a time\n");
    EXPECT_EQ(run_program({"tokenize", source, "--decode"}, ids).out, "<s> Once upon a time\n");
    const std::string bare = ids.substr(1, ids.size() - 3);  // without brackets and line break
    EXPECT_EQ(parse(run_program({"tokenize", source, "--decode", "--json", "--no-special"}, bare))["text"],
              "Once upon a time");
    expect_error({"tokenize", source, "--decode", "one two"}, 1, "not valid JSON");
}

TEST_F(Program, TokenizesFromASentencePieceModel) {
    const std::string model = data_path("tokenizers/sp_bpe.model");
    const json r = parse(run_program({"tokenize", model, "x = 10", "--json"}));
    EXPECT_EQ(r["pieces"][0], "<s>");
    expect_error({"tokenize", data_path("tokenizers/corpus.json"), "x"}, 1, "tokenizer.json");
    expect_error({"tokenize", data_path("fixtures/llama"), "x"}, 1, "no tokenizer");
}

TEST_F(Program, ListsDevices) {
    const json devices = parse(run_program({"devices", "--json"}));
    ASSERT_EQ(devices.size(), 3u);
    EXPECT_EQ(devices[0]["name"], "cpu");
    EXPECT_EQ(devices[2]["name"], "ref1");
    EXPECT_GT(devices[0]["free_bytes"], 0);
}

TEST_F(Program, PlansAModelAndABareConfigAlike) {
    const json from_model = parse(run_program({"plan", stories_, "-c", "256", "--json"}));
    const json from_config =
        parse(run_program({"plan", data_path("stories260k/config.json"), "--type", "f32", "-c", "256", "--json"}));
    // 5 layers, K and V, 256 tokens, 4 heads of 8 values of 4 bytes
    EXPECT_EQ(from_model["devices"][0]["kv_bytes"], 5 * 2 * 256 * 4 * 8 * 4);
    EXPECT_GT(from_model["devices"][0]["workspace_bytes"], 0);
    EXPECT_EQ(from_model["devices"][1]["total_bytes"], 0);
    EXPECT_EQ(from_model["switches_per_token"], 0);
    auto without = [](json plan) {
        for (auto& d : plan["devices"]) d.erase("free_bytes");
        plan.erase("assumption");
        std::vector<json> tensors = plan["tensors"];
        std::sort(tensors.begin(), tensors.end(), [](const json& a, const json& b) { return a["name"] < b["name"]; });
        plan["tensors"] = tensors;
        return plan;
    };
    EXPECT_EQ(without(from_model)["devices"][0]["dense_bytes"], without(from_config)["devices"][0]["dense_bytes"]);
    EXPECT_EQ(without(from_model)["tensors"].size(), without(from_config)["tensors"].size());
}

TEST_F(Program, PlanSaysWhichRuleDecidedAndHintsAtRulesThatCostMoreThanTheyBring) {
    const json plan =
        parse(run_program({"plan", stories_, "-ot", "ffn_norm=ref0", "-ot", "blk\\.0\\.ffn=ref1", "--json"}));
    ASSERT_EQ(plan["rules"].size(), 2u);
    EXPECT_EQ(plan["rules"][0]["matched"], 5);
    EXPECT_EQ(plan["rules"][0]["decided"], 5);
    EXPECT_EQ(plan["rules"][0]["bytes"], 5 * 64 * 4);
    EXPECT_EQ(plan["rules"][1]["matched"], 4);
    EXPECT_EQ(plan["rules"][1]["decided"], 3) << "ffn_norm was decided by the first rule";
    for (const auto& t : plan["tensors"])
        if (t["name"] == "blk.0.ffn_up.weight") {
            EXPECT_EQ(t["device"], "ref1");
            EXPECT_EQ(t["rule"], "blk\\.0\\.ffn=ref1");
        }
    EXPECT_GE(plan["switches_per_token"], 10);
    ASSERT_EQ(plan["hints"].size(), 1u);
    EXPECT_NE(plan["hints"][0].get<std::string>().find("rule ffn_norm=ref0 moves 5 small tensors"), std::string::npos)
        << plan["hints"][0];
    const json none = parse(run_program({"plan", stories_, "-ot", "blk\\.[01]\\..*=ref0", "--json"}));
    EXPECT_EQ(none["hints"].size(), 0u);
}

TEST_F(Program, ChatsThroughAPipe) {
    const auto r =
        run_program({"chat", stories_, "--temp", "0", "-n", "4"}, "Once upon a\n/reset\nOnce upon a\n/exit\nx\n");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, " time, there was\n time, there was\n");
}

TEST_F(Program, ChatCommandsChangeTheConversation) {
    const std::vector<std::string> chat{"chat", stories_, "--temp", "0", "-n", "4"};
    const auto r = run_program(chat, "Once upon a\n/regen\n/edit One day\n/edit\nOnce upon a\n/tokens\n");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const std::string first = " time, there was\n";
    ASSERT_EQ(r.out.substr(0, 2 * first.size()), first + first);
    EXPECT_EQ(r.out.substr(r.out.size() - first.size()), first);  // /edit without a text: the next message
    EXPECT_NE(r.err.find("2 messages, 8 of 512 tokens"), std::string::npos) << r.err;

    const auto shorter = run_program(chat, "/set predict 2\n/set\nOnce upon a\n");
    EXPECT_EQ(shorter.out, " time,\n") << shorter.err;
    EXPECT_EQ(run_program(chat, "Once\\\n upon\n").out, run_program(chat, "\"\"\"\nOnce\n upon\n\"\"\"\n").out);
    const auto wrong = run_program(chat, "/tokenz\n");
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err.find("/tokens"), std::string::npos) << wrong.err;
    EXPECT_EQ(run_program(chat, "/set temp warm\n").exit_code, 2);
    EXPECT_EQ(run_program({"chat", stories_, "-sys", "x"}, "").exit_code, 1);  // no template, no place for it
}

TEST_F(Program, ChatRendersMessagesByATemplate) {
    const std::string text = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ tail }}";
    const std::vector<std::string> chat{"chat", stories_, "--temp", "0", "-n", "4", "-st", "--chat-template", text};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), chat.begin(), chat.end());
        return run_program(more);
    };
    EXPECT_EQ(with({"-p", "Once upon a"}).out, " time, there was\n");
    EXPECT_EQ(with({"-sys", "Once upon", "-p", " a"}).out, " time, there was\n");
    EXPECT_EQ(with({"-p", "Once", "--chat-template-kwargs", R"({"tail": " upon a"})"}).out, " time, there was\n");

    const auto thinking = with({"-p", "Once", "--chat-template-kwargs", R"({"tail": " upon a<think>"})"});
    EXPECT_EQ(thinking.exit_code, 0) << thinking.err;
    EXPECT_EQ(thinking.out, "\n");  // all of it thoughts, which a pipe does not carry
    EXPECT_NE(thinking.err, "");
    const auto dimmed = with({"-p", "Once", "--color", "on", "--chat-template-kwargs", R"({"tail": "<think>"})"});
    EXPECT_EQ(dimmed.out.rfind("\x1b[2m", 0), 0u) << dimmed.out;

    EXPECT_EQ(with({"-p", "x", "--chat-template-kwargs", "[]"}).exit_code, 2);
    const auto refused = run_program({"chat", stories_, "-p", "x", "--chat-template", "{{ raise_exception('no x') }}"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("no x"), std::string::npos) << refused.err;
}

TEST_F(Program, BenchMeasuresModelsAndShapes) {
    const json rows = parse(run_program(
        {"bench", stories_, "-p", "8,16", "-n", "4", "-pg", "8,4", "-d", "0,9", "-r", "2", "--json", "-q"}));
    ASSERT_EQ(rows.size(), 8u);
    EXPECT_EQ(rows[0]["test"], "pp8");
    EXPECT_EQ(rows[2]["test"], "tg4");
    EXPECT_EQ(rows[7]["test"], "pp8+tg4 @ d9");
    for (const json& row : rows) {
        EXPECT_GT(row["tokens_per_second"], 0) << row;
        EXPECT_EQ(row["percent_of_limit"].is_null(), row["n_prompt"] != 0) << row;
    }
    const std::string config = data_path("fixtures/qwen3_moe/config.json");
    const auto shape = run_program({"bench", "--shape", config, "--type", "q8_0", "--layers", "2", "-p", "4", "-n", "2",
                                    "-r", "1", "-o", "csv", "-q"});
    EXPECT_EQ(shape.exit_code, 0) << shape.err;
    EXPECT_EQ(std::count(shape.out.begin(), shape.out.end(), '\n'), 3) << shape.out;

    const auto kernels =
        parse(run_program({"bench", "--kernels", "--type", "q8_0", "-p", "1,8", "-t", "2", "--json", "-q"}));
    ASSERT_GE(kernels.size(), 4u);  // two numbers of columns, at least scalar and one more
    EXPECT_EQ(kernels.size() % 2, 0u);
    for (size_t i = 0; i < kernels.size(); ++i) {
        EXPECT_EQ(kernels[i]["columns"], i % 2 ? 8 : 1);
        EXPECT_GT(kernels[i]["gbps"].get<double>(), 0);
        EXPECT_NEAR(kernels[i]["gops"].get<double>() / kernels[i]["gbps"].get<double>(),
                    kernels[i]["columns"].get<double>() * 2 * 512 / 544, 1e-6);  // 544 bytes hold 512 weights
    }
    EXPECT_EQ(kernels.back()["isa"], "scalar");
    expect_error({"bench", "--kernels", "-p", "0"}, 2, "-p 0");
    expect_error({"bench", "--kernels", "--isa", "vax"}, 1, "vax");
    expect_error({"bench"}, 2, "--shape");
    expect_error({"bench", stories_, "-p", "8,x"}, 2, "8,x");
    expect_error({"bench", stories_, "-pg", "8"}, 2, "512,128");
    expect_error({"bench", stories_, "-p", "0", "-n", "0"}, 2, "nothing to time");
    expect_error({"bench", stories_, "-p", "513"}, 1, "512");
    expect_error({"bench", "--shape", config, "--layers", "99"}, 1, "--layers 99");
    expect_error({"bench", "--shape", folder_.file("absent.json")}, 1, "absent.json");
}

TEST_F(Program, ChatGoesOnFromASavedConversation) {
    const std::string saved = folder_.file("chat.json");
    const auto first =
        run_program({"chat", stories_, "--temp", "0", "-n", "4"}, "Once upon a\n/save " + saved + "\n, a dog\n");
    const auto second = run_program({"chat", stories_, "--temp", "0", "-n", "4"}, "/load " + saved + "\n, a dog\n");
    EXPECT_EQ(second.exit_code, 0) << second.err;
    const auto last_line = [](const std::string& text) { return text.substr(text.rfind('\n', text.size() - 2) + 1); };
    EXPECT_EQ(last_line(second.out), last_line(first.out));

    std::ifstream in(saved);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    for (size_t n = 0; n + 2 < text.size(); n += 7) {
        std::ofstream(saved) << text.substr(0, n);
        const auto r = run_program({"chat", stories_}, "/load " + saved + "\n");
        EXPECT_EQ(r.exit_code, 1) << n;
        EXPECT_NE(r.err.find("damaged"), std::string::npos) << r.err;
    }
}

TEST_F(Program, EndsWithOneLineOfErrorWhenUsedWrongly) {
    expect_error({"run"}, 2, "no model");
    expect_error({"run", folder_.file("absent.ggmx"), "-p", "x"}, 1, "absent.ggmx");
    expect_error({"run", data_path("stories260k"), "-p", "x"}, 1, "ggmlx convert");
    expect_error({"run", stories_, "--no-such-flag"}, 2, "--no-such-flag");
    expect_error({"run", stories_, "-p", "x", "-f", "y"}, 2, "one of -p, -f and --ids");
    expect_error({"run", stories_, "-f", folder_.file("absent.txt")}, 1, "absent.txt");
    expect_error({"run", stories_, "-c", "513", "-p", "x"}, 1, "512");
    expect_error({"run", stories_, "-c", "4", "-p", "Once upon a time, there was"}, 1, "context of 4");
    expect_error({"run", stories_, "-ctk", "q4_k", "-p", "x"}, 1, "--cache-type-k");
    expect_error({"run", stories_, "-ctv", "nonsense", "-p", "x"}, 2, "nonsense");
    expect_error({"run", stories_, "-ot", "attn_q=cuda7", "-p", "x"}, 1, "cuda7");
    expect_error({"run", stories_, "-ot", "attn_qq=cpu", "-p", "x"}, 1, "attn_qq");
    expect_error({"run", stories_, "-ot", "blk.(=cpu", "-p", "x"}, 1, "blk.(");
    expect_error({"run", stories_, "--isa", "mmx", "-p", "x"}, 1, "mmx");
    expect_error({"run", stories_, "--top-p", "2", "-p", "x"}, 2, "--top-p");
    expect_error({"run", stories_, "-l", "5*3", "-p", "x"}, 2, "5*3");
    expect_error({"eval", stories_, "-p", "x", "--last", "9"}, 1, "--last 9");
    expect_error({"eval", stories_, "-p", "x", "--dump", "blk.0.fn_out=x"}, 1, "fn_out");
    expect_error({"eval", stories_, "-p", "x", "--dump", "nothing"}, 2, "NAME=OUT");
    expect_error({"perplexity", stories_}, 2, "-f");
    expect_error({"tokenize", folder_.file("absent.json"), "x"}, 1, "absent.json");
    expect_error({"plan", folder_.file("absent.json")}, 1, "absent.json");
}

TEST_F(Program, RefusesIdsThatAreNoTokens) {
    const std::string ids = folder_.file("ids.json");
    for (const char* text : {"[1, 512]", "[1, -1]", "[1, 1.5]", "{}", "[\"a\"]", "[", "[]", "[1e99]"}) {
        std::ofstream(ids) << text;
        const auto r = run_program({"eval", stories_, "--ids", ids});
        EXPECT_EQ(r.exit_code, 1) << text;
        EXPECT_EQ(after_start_lines(r.err).rfind("error: ", 0), 0u) << r.err;
    }
}

TEST_F(Program, WarnsOfFlagsWithoutEffect) {
    const auto r = run_program({"run", stories_, "-p", "Once", "-n", "1", "-q", "--no-warmup", "-sm", "row"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_NE(r.err.find("without effect in this version: --no-warmup, -sm"), std::string::npos) << r.err;
}

TEST_F(Program, WarnsOfFlagsOfACardWhereThereIsNone) {
    if (ggmlx::find_cuda_cards().count > 0) GTEST_SKIP() << "this machine has a card";
    const auto r = run_program({"run", stories_, "-p", "Once", "-n", "1", "-q", "-ngl", "99", "--vram", "24G"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_NE(r.err.find("no card is used"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(": -ngl, --vram"), std::string::npos) << r.err;
}

TEST_F(Program, SaysWhichKernelsMultiplyHowMuch) {
    const auto r = run_program({"run", stories_, "-n", "1", "--isa", "scalar"});
    EXPECT_NE(r.err.find("\nkernels: f32 with scalar float, "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("(f32 has no int8 products)\n"), std::string::npos) << r.err;
    EXPECT_EQ(run_program({"run", stories_, "-n", "1", "-q"}).err.find("kernels: "), std::string::npos);
}

TEST_F(Program, FastBf16SaysWhatCameOfIt) {
    const auto run = [this](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"run", stories_, "-p", "Once upon a time", "-n", "12", "--temp", "0"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_program(arguments);
    };
    const auto exact = run({});
    EXPECT_EQ(exact.err.find("bf16 products"), std::string::npos) << exact.err;
    // Without the instructions it is a remark, and without effect.
    const auto scalar = run({"--fast-bf16", "--isa", "scalar"});
    EXPECT_EQ(scalar.exit_code, 0);
    EXPECT_EQ(scalar.out, exact.out);
    EXPECT_NE(scalar.err.find("--fast-bf16 without effect (scalar has no bf16 products"), std::string::npos)
        << scalar.err;
    // A model of f32 is multiplied exactly on any processor.
    const auto fast = run({"--fast-bf16"});
    EXPECT_EQ(fast.exit_code, 0) << fast.err;
    EXPECT_EQ(fast.out, exact.out);
    EXPECT_NE(fast.err.find("bf16 products"), std::string::npos) << fast.err;
    for (const char* command : {"run", "chat", "bench", "eval", "perplexity", "plan"})
        EXPECT_NE(run_program({command, "--help"}).out.find("--fast-bf16"), std::string::npos) << command;
}

TEST_F(Program, MemoryOptionsChangeNoToken) {
    const auto run = [this](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"run", stories_, "-p", "Once upon a time", "-n", "12", "--temp", "0"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_program(arguments);
    };
    const auto plain = run({});
    EXPECT_NE(plain.err.find("weights mapped from the file"), std::string::npos) << plain.err;
    for (const std::vector<std::string>& more : {std::vector<std::string>{"--no-mmap"},
                                                 {"--mmap", "--mlock"},
                                                 {"--no-pin"},
                                                 {"--numa", "interleave"},
                                                 {"--numa", "shard"}}) {
        const auto r = run(more);
        EXPECT_EQ(r.exit_code, 0) << r.err;
        EXPECT_EQ(r.out, plain.out) << more[0];
        EXPECT_EQ(r.err.find("cpu: "), 0u) << r.err;
        EXPECT_NE(r.err.find("numa "), std::string::npos) << r.err;
    }
    EXPECT_NE(run({"--no-mmap"}).err.find("weights in memory of their own"), std::string::npos);
    EXPECT_EQ(run({"--mmap", "--no-mmap"}).exit_code, 2);
    EXPECT_EQ(run({"--numa", "distribute"}).exit_code, 2);
}

}  // namespace
}  // namespace e2e
