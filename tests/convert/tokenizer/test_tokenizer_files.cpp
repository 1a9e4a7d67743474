// Tokenizers that come without a tokenizer.json: SentencePiece's protocol buffer, tiktoken's ranks, tekken.json.

#include <bit>
#include <map>

#include "convert/tokenizer/files.h"
#include "convert/tokenizer/sentencepiece_model.h"
#include "convert/tokenizer/tekken.h"
#include "convert/tokenizer/tiktoken.h"
#include "ggmlx/core/base64.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using nlohmann::json;
using Ids = std::vector<llm::TokenId>;
using Files = std::map<std::string, std::string, std::less<>>;

ReadFile reader(const Files& files) {
    return [files](std::string_view name) {
        const auto it = files.find(name);
        return it == files.end() ? std::nullopt : std::optional(it->second);
    };
}

/// The tokenizer that a folder with these files gives.
llm::Tokenizer tokenizer_of(const Files& files) {
    const auto document = tokenizer_document(reader(files));
    EXPECT_TRUE(document.has_value());
    const auto config = files.find("tokenizer_config.json");
    return llm::Tokenizer::from_json(document.value_or(""), config == files.end() ? "" : config->second);
}

void expect_failure(const Files& files, ErrorKind kind, const std::string& part) {
    try {
        tokenizer_document(reader(files));
        ADD_FAILURE() << "no error about " << part;
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), kind) << e.what();
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
}

// --- protocol buffers ----------------------------------------------------------------------------------------------

std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
}
std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(uint32_t field, const std::string& value) {
    return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string real(uint32_t field, float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    std::string out = varint(field << 3 | 5);
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(bits >> shift);
    return out;
}
std::string piece(const std::string& text, float score, int type) {
    return bytes(1, bytes(1, text) + real(2, score) + (type == 1 ? "" : number(3, static_cast<uint64_t>(type))));
}

const std::string kTrainerBpe = bytes(2, number(3, 2) + number(35, 1));
const std::string kPlainNormalizer = bytes(3, bytes(1, "identity") + number(3, 1) + number(4, 0));

std::string small_model(const std::string& trainer = kTrainerBpe, const std::string& normalizer = kPlainNormalizer) {
    std::string model = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
    for (int byte = 0; byte < 256; ++byte) model += piece(fmt::format("<0x{:02X}>", byte), 0, 6);
    float score = 0;
    for (const char* text : {"ab", "▁ab", "▁", "a", "b"}) model += piece(text, score -= 1, 1);
    return model + trainer + normalizer;
}
constexpr llm::TokenId kAb = 259, kMarkAb = 260, kMark = 261;

TEST(SentencePieceModel, BpeWithByteFallback) {
    const llm::Tokenizer t = tokenizer_of({{"tokenizer.model", small_model()}});
    EXPECT_EQ(t.encode("ab ab"), (Ids{1, kMarkAb, kMarkAb}));
    EXPECT_EQ(t.encode("\n"), (Ids{1, kMark, 3 + '\n'}));
    EXPECT_EQ(t.decode(t.encode("ab  é ab")), "ab  é ab");
    EXPECT_TRUE(t.is_special(2));
}

TEST(SentencePieceModel, TheConfigSaysWhatTheFileDoesNot) {
    const auto with = [](const std::string& config) {
        return tokenizer_of({{"tokenizer.model", small_model()}, {"tokenizer_config.json", config}});
    };
    EXPECT_EQ(with(R"({"add_bos_token": false, "add_eos_token": true})").encode("ab"), (Ids{kMarkAb, 2}));
    EXPECT_EQ(with(R"({"add_bos_token": false})").encode("</s>ab"), (Ids{2, kMarkAb}));
    EXPECT_EQ(with(R"({"add_bos_token": false, "legacy": false})").encode("</s>ab"), (Ids{2, kAb}));
    EXPECT_EQ(with(R"({"add_bos_token": false, "add_prefix_space": false})").encode("ab"), (Ids{kAb}));
    const std::string more = R"({"add_bos_token": false, "added_tokens_decoder":
        {"264": {"content": "<|x|>", "special": true, "rstrip": true}}})";
    EXPECT_EQ(with(more).encode("<|x|> ab"), (Ids{264, kMarkAb}));
    const llm::Tokenizer older = tokenizer_of({{"tokenizer.model", small_model()},
                                               {"tokenizer_config.json", R"({"add_bos_token": false})"},
                                               {"added_tokens.json", R"({"<|x|>": 264})"}});
    EXPECT_EQ(older.encode("<|x|>"), (Ids{264}));
}

TEST(SentencePieceModel, UnigramIsTheDefault) {
    std::string model = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
    model += piece("▁a", -1, 1) + piece("▁", -2, 1) + piece("a", -3, 1) + piece("aa", -3.5f, 1);
    const llm::Tokenizer t = tokenizer_of({{"spiece.model", model}});
    EXPECT_EQ(t.encode("  a  aaa "), (Ids{1, 3, 3, 6})) << "remove_extra_whitespaces is the default, too";
    EXPECT_EQ(t.encode("ax"), (Ids{1, 3, 0}));
    EXPECT_EQ(t.decode(t.encode("a aaa")), "a aaa");
}

TEST(SentencePieceModel, WhatIsNotSupportedIsNamed) {
    const auto refuse = [](const std::string& model, const std::string& part) {
        expect_failure({{"tokenizer.model", model}}, ErrorKind::Unsupported, part);
    };
    refuse(small_model(bytes(2, number(3, 3))), "WORD");
    refuse(small_model(bytes(2, number(3, 4))), "CHAR");
    refuse(small_model(bytes(2, number(3, 2) + number(24, 1))), "treat_whitespace_as_suffix");
    refuse(small_model(kTrainerBpe, bytes(3, number(5, 0))), "escape_whitespaces");
    refuse(small_model() + bytes(5, bytes(2, "x")), "denormalizer_spec");
    refuse(small_model() + piece("odd", 0, 7), "type 7");
    expect_failure({{"tokenizer.model", small_model()},
                    {"tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizerFast"})"}},
                   ErrorKind::Unsupported, "XLMRobertaTokenizer");
}

TEST(SentencePieceModel, EveryCutAndEveryChangedByteIsAnErrorOrATokenizer) {
    const std::string model = small_model();
    size_t n_errors = 0;
    const auto load = [&](const std::string& damaged) {
        try {
            tokenizer_document(reader({{"tokenizer.model", damaged}}));
        } catch (const ggmlx::Error&) {
            ++n_errors;
        }
    };
    for (size_t n = 0; n < model.size(); ++n) load(model.substr(0, n));
    EXPECT_GT(n_errors, model.size() / 2);
    for (size_t i = 0; i < model.size(); i += 3)
        for (const int byte : {0x00, 0x7F, 0x80, 0xFF}) {
            std::string damaged = model;
            damaged[i] = static_cast<char>(byte);
            load(damaged);
        }
}

// --- tiktoken ------------------------------------------------------------------------------------------------------

std::string tiktoken_file(const std::vector<std::string>& more) {
    std::string out;
    size_t rank = 0;
    const auto add = [&](const std::string& token) { out += fmt::format("{} {}\n", ggmlx::to_base64(token), rank++); };
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const std::string& token : more) add(token);
    return out;
}

TEST(Tiktoken, MergesAreDerivedFromRanks) {
    RankedTokens model = read_tiktoken(tiktoken_file({"bc", "ab", "abc", "abcd", "xyz"}));
    model.pattern = ".+";
    const json tree = json::parse(tokenizer_json(model));
    // "xyz" cannot be joined: there is neither "xy" nor "yz". It is found whole.
    EXPECT_EQ(tree["model"]["merges"], json::parse(R"([["b","c"],["a","b"],["a","bc"],["abc","d"]])"));
    const llm::Tokenizer t = llm::Tokenizer::from_json(tree.dump());
    EXPECT_EQ(t.encode("abcd"), (Ids{259}));
    EXPECT_EQ(t.encode("xyz"), (Ids{260}));
    EXPECT_EQ(t.encode("xyzab"), (Ids{'x', 'y', 'z', 257}));
    EXPECT_EQ(t.decode(t.encode("é\xF0\x9F\x98\x80 ab")), "é\xF0\x9F\x98\x80 ab");
}

TEST(Tiktoken, KnownByTheNameOfTheFile) {
    const llm::Tokenizer t = tokenizer_of({{"o200k_base.tiktoken", tiktoken_file({" a"})}});
    EXPECT_EQ(t.encode("a a<|endofprompt|>"), (Ids{'a', 256, 200018}));
    EXPECT_EQ(t.encode("a  a"), (Ids{'a', ' ', 256}));
}

const std::string kKimiConfig = R"({"auto_map": {"AutoTokenizer": ["tokenization_x.T", null]},
    "added_tokens_decoder": {"300": {"content": "[BOS]", "special": true}}})";

TEST(Tiktoken, TheExpressionComesFromTheCheckpointsOwnModule) {
    const std::string module =
        "class T:\n    # rules\n    pat_str = \"|\".join(\n        [\n            r\"\"\"[\\p{Han}]+\"\"\",\n"
        "            r'''\\p{N}{1,3}''',  # digits\n            r\" ?[^\\s\\p{N}]+\", r'\\s+'\n        ]\n    )\n";
    EXPECT_EQ(pattern_of_module(module), R"([\p{Han}]+|\p{N}{1,3}| ?[^\s\p{N}]+|\s+)");
    EXPECT_EQ(pattern_of_module("pat_str = r\"a\\\"b\""), "a\\\"b");
    EXPECT_EQ(pattern_of_module("x = pat_str\npat_str=r'y'"), "y");
    EXPECT_EQ(pattern_of_module("pat_str = \"|\".join([r'a', r'b',])"), "a|b");
    for (const char* other : {"", "pat_str", "pat_str = f'{x}'", "pat_str = \"|\".join(parts)", "pat_str = r'open",
                              "pat_str = \"|\".join([r'a' r'b'])", "pat_str = \"|\".join([r'a'",
                              "pat_str = \"|\".join([])", "pat_str = r'\xFF'", "pat_str = r'\\"})
        EXPECT_FALSE(pattern_of_module(other).has_value()) << other;

    const llm::Tokenizer t = tokenizer_of({{"tiktoken.model", tiktoken_file({" a", "12", "123"})},
                                           {"tokenizer_config.json", kKimiConfig},
                                           {"tokenization_x.py", module}});
    EXPECT_EQ(t.encode("[BOS] a1234"), (Ids{300, 256, 258, '4'}));
}

TEST(Tiktoken, RulesThatAreNotToldAreNotGuessed) {
    const std::string file = tiktoken_file({});
    expect_failure({{"tiktoken.model", file}}, ErrorKind::Unsupported, "auto_map names none");
    expect_failure({{"tiktoken.model", file}, {"tokenizer_config.json", kKimiConfig}}, ErrorKind::Unsupported,
                   "tokenization_x.py");
    expect_failure({{"tokenizer.model", file}}, ErrorKind::Unsupported, "tokenizer.model holds ranks alone");
    expect_failure(
        {{"tiktoken.model", file}, {"tokenizer_config.json", R"({"auto_map": {"AutoTokenizer": "../x.T"}})"}},
        ErrorKind::Unsupported, "auto_map names none");
}

TEST(Tiktoken, DamagedFiles) {
    const auto corrupt = [](const std::string& text, const std::string& part) {
        expect_failure({{"o200k_base.tiktoken", text}}, ErrorKind::CorruptFile, part);
    };
    const std::string good = tiktoken_file({"ab"});
    corrupt(good + "YWI= x\n", "line 258");
    corrupt(good + "Y!== 300\n", "line 258");
    corrupt(good + "YWI= 300\n", "has another rank");
    corrupt(good + "YWM= 256\n", "rank 256");
    corrupt(good + "YWM= -1\n", "line 258");
    corrupt(good + " 300\n", "is empty");
    corrupt(good.substr(good.find('\n') + 1), "byte 0 has no token");
    expect_failure({{"o200k_base.tiktoken", good + ggmlx::to_base64(std::string(513, 'a')) + " 300\n"}},
                   ErrorKind::Unsupported, "513 bytes");
}

// --- tekken --------------------------------------------------------------------------------------------------------

json tekken_tree(const std::vector<std::string>& more, int n_special) {
    json tree = {{"vocab", json::array()}};
    const auto add = [&](const std::string& token) {
        tree["vocab"].push_back(
            {{"rank", tree["vocab"].size()}, {"token_bytes", ggmlx::to_base64(token)}, {"token_str", nullptr}});
    };
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const std::string& token : more) add(token);
    tree["config"] = {{"pattern", "\\p{L}+|\\P{L}"},
                      {"num_vocab_tokens", tree["vocab"].size()},
                      {"default_vocab_size", static_cast<int>(tree["vocab"].size()) + n_special},
                      {"default_num_special_tokens", n_special},
                      {"version", "v3"}};
    return tree;
}

TEST(Tekken, SpecialTokensComeFirst) {
    json tree = tekken_tree({"ab", "abc"}, 30);
    const llm::Tokenizer t = tokenizer_of({{"tekken.json", tree.dump()}});
    EXPECT_EQ(t.encode("[INST]abc b"), (Ids{1, 3, 30 + 257, 30 + ' ', 30 + 'b'}));
    EXPECT_EQ(t.id_to_token(29), "<SPECIAL_29>");
    EXPECT_TRUE(t.is_special(29));
    tree["special_tokens"] = json::parse(R"([{"rank": 0, "token_str": "<unk>"}, {"rank": 1, "token_str": "<s>"},
        {"rank": 7, "token_str": "[SEVEN]", "is_control": true}])");
    const llm::Tokenizer listed = tokenizer_of({{"tekken.json", tree.dump()}});
    EXPECT_EQ(listed.encode("[SEVEN]"), (Ids{1, 7}));
    EXPECT_EQ(listed.id_to_token(3), "<SPECIAL_3>");
    tree["config"]["default_vocab_size"] = 30 + 257;
    EXPECT_EQ(tokenizer_of({{"tekken.json", tree.dump()}}).n_vocab(), 30 + 257) << "the rest of the file is not used";
}

TEST(Tekken, DamagedFiles) {
    const auto corrupt = [](const json& tree, const std::string& part) {
        expect_failure({{"tekken.json", tree.dump()}}, ErrorKind::CorruptFile, part);
    };
    const json good = tekken_tree({}, 10);
    json tree = good;
    tree.erase("config");
    corrupt(tree, "'config'");
    tree = good;
    tree["config"]["default_num_special_tokens"] = 1 << 20;
    corrupt(tree, "default_num_special_tokens");
    tree = good;
    tree["config"]["pattern"] = 1;
    corrupt(tree, "'pattern'");
    tree = good;
    tree["vocab"][3]["token_bytes"] = "?";
    corrupt(tree, "rank 3 is not base64");
    tree = good;
    tree["vocab"][3]["rank"] = 4;
    corrupt(tree, "rank 4");
    tree = good;
    tree["special_tokens"] = {{{"rank", 10}, {"token_str", "<s>"}}};
    corrupt(tree, "special token 10 of 10");
    expect_failure({{"tekken.json", "["}}, ErrorKind::CorruptFile, "tekken.json");
}

// --- which file counts ---------------------------------------------------------------------------------------------

TEST(TokenizerFiles, TokenizerJsonComesFirstAndVerbatim) {
    EXPECT_EQ(tokenizer_document(reader({{"tokenizer.json", "{ }"}, {"tokenizer.model", "x"}})), "{ }");
    EXPECT_FALSE(tokenizer_document(reader({{"vocab.json", "{}"}})).has_value());
}

}  // namespace
}  // namespace convert
