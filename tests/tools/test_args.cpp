// The command line: spellings, aliases, ranges, environment, and what is said about mistakes.

#include "tools/args.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cli {
namespace {

struct Options {
    int64_t n_ctx = 1, n_gpu_layers = 2;
    std::optional<int64_t> n_predict;
    double temperature = 0.5;
    std::optional<uint64_t> vram;
    std::string prompt, mode = "off", model;
    std::vector<std::string> rules;
    bool escape = false;
    Common common;
};

Options parse(const std::vector<std::string>& arguments) {
    Options o;
    Args args("test", "A test.", "  ggmlx test\n");
    args.model(o.model);
    args.option("-c,--ctx-size", o.n_ctx, {0, 1 << 20}, "context");
    args.option("-n,--predict,--n-predict", o.n_predict, {-1, 1 << 30}, "tokens");
    args.option("-ngl,--n-gpu-layers,--gpu-layers", o.n_gpu_layers, {0, 1000}, "layers");
    args.option("--temp,--temperature", o.temperature, {0, 100}, "temperature");
    args.size("--vram", o.vram, "budget");
    args.option("-p,--prompt", o.prompt, "TEXT", "prompt");
    args.option("-ot,--override-tensor", o.rules, "RULE", "rule");
    args.choice("-fa,--flash-attn", o.mode, {"on", "off", "auto"}, "attention");
    args.flag("-e,--escape", o.escape, "escapes");
    args.common(o.common);
    EXPECT_TRUE(args.parse(arguments));
    return o;
}

std::string mistake(const std::vector<std::string>& arguments) {
    try {
        parse(arguments);
    } catch (const UsageError& error) {
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
}

TEST(Args, AcceptsEverySpelling) {
    for (const std::vector<std::string>& spelling : std::vector<std::vector<std::string>>{
             {"-c", "64"}, {"-c=64"}, {"-c64"}, {"--ctx-size", "64"}, {"--ctx-size=64"}}) {
        auto arguments = spelling;
        arguments.push_back("model");
        EXPECT_EQ(parse(arguments).n_ctx, 64) << spelling[0];
    }
    for (const std::vector<std::string>& spelling : std::vector<std::vector<std::string>>{
             {"-ngl", "99"}, {"-ngl=99"}, {"--n-gpu-layers=99"}, {"--gpu-layers", "99"}}) {
        auto arguments = spelling;
        arguments.push_back("model");
        const Options o = parse(arguments);
        EXPECT_EQ(o.n_gpu_layers, 99) << spelling[0];
        EXPECT_FALSE(o.n_predict.has_value()) << spelling[0];
    }
}

TEST(Args, LeavesValuesAlone) {
    EXPECT_EQ(parse({"m", "-p", "-ngl"}).prompt, "-ngl");
    EXPECT_EQ(parse({"m", "-p", "[a, b]"}).prompt, "[a, b]");
    EXPECT_EQ(parse({"m", "-p", ""}).prompt, "");
    EXPECT_EQ(parse({"m", "--prompt=", "-c", "3"}).n_ctx, 3);
    EXPECT_EQ(parse({"m", "-p=a=b=c"}).prompt, "a=b=c");
    EXPECT_EQ(parse({"m", "-n", "-1"}).n_predict, -1);
    EXPECT_EQ(parse({"m", "-p", "--"}).prompt, "--");
    EXPECT_EQ(parse({"--", "-m"}).model, "-m");
    const auto rules = parse({"m", "-ot", "[a,b]=cpu", "--override-tensor", "x{1,2}=cpu", "-ot=[c]"}).rules;
    EXPECT_EQ(rules, (std::vector<std::string>{"[a,b]=cpu", "x{1,2}=cpu", "[c]"}));
}

TEST(Args, LetsTheLastOfRepeatedOptionsWin) { EXPECT_EQ(parse({"m", "-c", "1", "-c", "2"}).n_ctx, 2); }

TEST(Args, CombinesSwitches) {
    const Options o = parse({"m", "-qv", "-e"});
    EXPECT_TRUE(o.common.quiet && o.common.verbose && o.escape && !o.common.json);
}

TEST(Args, TakesTheModelInBothForms) {
    EXPECT_EQ(parse({"a.ggmx"}).model, "a.ggmx");
    EXPECT_EQ(parse({"-m", "a.ggmx"}).model, "a.ggmx");
    EXPECT_EQ(parse({"--model=a.ggmx"}).model, "a.ggmx");
    EXPECT_NE(mistake({"a", "-m", "b"}).find("two models"), std::string::npos);
    EXPECT_NE(mistake({}).find("no model"), std::string::npos);
    EXPECT_NE(mistake({"a", "b"}).find("b"), std::string::npos);
}

TEST(Args, ReadsTheEnvironmentBelowTheCommandLine) {
    setenv("GGMLX_CTX_SIZE", "77", 1);
    setenv("GGMLX_MODEL", "env.ggmx", 1);
    EXPECT_EQ(parse({}).n_ctx, 77);
    EXPECT_EQ(parse({}).model, "env.ggmx");
    EXPECT_EQ(parse({"a", "-c", "5"}).n_ctx, 5);
    EXPECT_EQ(parse({"a"}).model, "a");
    setenv("GGMLX_CTX_SIZE", "many", 1);
    EXPECT_NE(mistake({"a"}).find("many"), std::string::npos);
    unsetenv("GGMLX_CTX_SIZE");
    unsetenv("GGMLX_MODEL");
}

TEST(Args, ChecksNumbers) {
    EXPECT_NE(mistake({"m", "-c", "x"}).find("whole number"), std::string::npos);
    EXPECT_NE(mistake({"m", "-c", "1.5"}).find("whole number"), std::string::npos);
    EXPECT_NE(mistake({"m", "-c", "-1"}).find("between 0 and"), std::string::npos);
    EXPECT_NE(mistake({"m", "-c", "99999999999999999999"}).find("-c"), std::string::npos);
    EXPECT_NE(mistake({"m", "--temp", "nan"}).find("number"), std::string::npos);
    EXPECT_NE(mistake({"m", "--temp", "inf"}).find("number"), std::string::npos);
    EXPECT_EQ(parse({"m", "--temp", "1e-2"}).temperature, 1e-2);
    EXPECT_NE(mistake({"m", "-c"}).find("-c needs a value"), std::string::npos);
}

TEST(Args, NamesWhatIsUnknown) {
    EXPECT_NE(mistake({"m", "--ctx-sise", "4"}).find("--ctx-size"), std::string::npos);
    EXPECT_NE(mistake({"m", "-xyz"}).find("no option -xyz"), std::string::npos);
    EXPECT_NE(mistake({"m", "-nope", "4"}).find("no option -nope"), std::string::npos);  // not -n ope
    EXPECT_NE(mistake({"m", "--escape=yes"}).find("takes no value"), std::string::npos);
    EXPECT_NE(mistake({"m", "-fa", "maybe"}).find("on|off|auto"), std::string::npos);
}

TEST(ParseSize, KnowsUnits) {
    EXPECT_EQ(parse_size("x", "123"), 123u);
    EXPECT_EQ(parse_size("x", "24G"), uint64_t{24} << 30);
    EXPECT_EQ(parse_size("x", "1.5k"), 1536u);
    EXPECT_EQ(parse_size("x", "512MB"), uint64_t{512} << 20);
    EXPECT_EQ(parse_size("x", "2GiB"), uint64_t{2} << 30);
    for (const char* bad : {"", "G", "-1G", "1X", "1e30T", "nan", "inf", "12 G", "B"})
        EXPECT_THROW(parse_size("x", bad), UsageError) << bad;
    EXPECT_EQ(parse({"m", "--vram", "2G"}).vram, uint64_t{2} << 30);
}

TEST(HumanBytes, HasThreeDigits) {
    EXPECT_EQ(human_bytes(0), "0 B");
    EXPECT_EQ(human_bytes(999), "999 B");
    EXPECT_EQ(human_bytes(1536), "1.50 KiB");
    EXPECT_EQ(human_bytes(uint64_t{24} << 30), "24.0 GiB");
    EXPECT_EQ(human_bytes(1023), "1.00 KiB");
    EXPECT_EQ(human_bytes(UINT64_MAX), "16384 PiB");
}

}  // namespace
}  // namespace cli
