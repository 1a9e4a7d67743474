// tokenizer.json that is damaged, contradicts itself, or asks for what is not there.

#include "ggmlx/core/error.h"
#include "tests/src/tokenizer/fixtures.h"

namespace llm::test {
namespace {

using ggmlx::ErrorKind;
using nlohmann::json;

/// Ten tokens, and one more added with a gap before it.
json with_a_gap() {
    json tree = json::parse(
        R"({"version": "1.0", "added_tokens": [{"id": 11, "content": "<x>", "special": true, "normalized": false}],
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6, "h": 7, "ab": 8, "cd": 9}, "merges": ["a b", "c d"]}})");
    return tree;
}

void expect_error(const std::string& text, ErrorKind kind, const std::string& named, const std::string& config = {}) {
    try {
        Tokenizer::from_json(text, config);
        ADD_FAILURE() << "accepted; expected a complaint about " << named;
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), kind) << e.what();
        EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
    }
}

void expect_error(const json& tree, ErrorKind kind, const std::string& named) {
    expect_error(tree.dump(), kind, named);
}

TEST(Loading, AddedIdsWithAGapKeepTheirIds) {
    const Tokenizer t = Tokenizer::from_json(with_a_gap().dump());
    EXPECT_EQ(t.encode("ab<x>cd"), (std::vector<TokenId>{8, 11, 9}));
    EXPECT_EQ(t.decode(std::vector<TokenId>{8, 10, 11, 9, 12, -1}, false), "ab <x> cd");
    EXPECT_EQ(t.n_vocab(), 12);
    EXPECT_TRUE(t.has_token(9));
    EXPECT_FALSE(t.has_token(10));
    EXPECT_TRUE(t.has_token(11));
    EXPECT_FALSE(t.has_token(12));
    EXPECT_FALSE(t.has_token(-1));
    EXPECT_TRUE(t.is_special(11));
    EXPECT_FALSE(t.is_special(8));
    EXPECT_EQ(t.token_to_id("<x>"), 11);
    EXPECT_EQ(t.token_to_id("cd"), 9);
    EXPECT_EQ(t.token_to_id("nothing"), std::nullopt);
    EXPECT_EQ(t.id_to_token(8), "ab");
    EXPECT_EQ(t.id_to_token(10), "");
}

TEST(Loading, ContradictingIdsAreErrors) {
    json tree = with_a_gap();
    tree["added_tokens"][0]["id"] = 3;
    expect_error(tree, ErrorKind::CorruptFile, "'<x>' has id 3");
    tree = with_a_gap();
    tree["added_tokens"][0]["content"] = "ab";
    expect_error(tree, ErrorKind::CorruptFile, "'ab'");
    tree = with_a_gap();
    tree["model"]["vocab"]["z"] = 3;
    expect_error(tree, ErrorKind::CorruptFile, "both have id 3");
    tree["model"]["vocab"]["z"] = -1;
    expect_error(tree, ErrorKind::CorruptFile, "'z' has id -1");
    tree["model"]["vocab"]["z"] = 4000000000u;
    expect_error(tree, ErrorKind::CorruptFile, "'z' has id 4000000000");
    tree = with_a_gap();
    tree["model"]["merges"].push_back("a q");
    expect_error(tree, ErrorKind::CorruptFile, "'q'");
    tree["model"]["merges"][2] = "a b c";
    expect_error(tree, ErrorKind::CorruptFile, "'a b c'");
}

TEST(Loading, UnknownConstructsAreRefusedByName) {
    const auto unsupported = ErrorKind::Unsupported;
    json tree = with_a_gap();
    tree["normalizer"] = {{"type", "Wonder"}};
    expect_error(tree, unsupported, "normalizer Wonder");
    tree["normalizer"] = {{"type", "NFC"}, {"mode", 1}};
    expect_error(tree, unsupported, "field 'mode' of normalizer NFC");
    tree = with_a_gap();
    tree["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Wonder"}}}}};
    expect_error(tree, unsupported, "pre_tokenizer Wonder");
    tree["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Odd"}, {"invert", false}};
    expect_error(tree, unsupported, "split behavior 'Odd'");
    tree = with_a_gap();
    tree["post_processor"] = {{"type", "Wonder"}};
    expect_error(tree, unsupported, "post_processor Wonder");
    tree = with_a_gap();
    tree["decoder"] = {{"type", "Wonder"}};
    expect_error(tree, unsupported, "decoder Wonder");
    tree = with_a_gap();
    tree["model"]["type"] = "Wonder";
    expect_error(tree, unsupported, "model Wonder");
    tree = with_a_gap();
    tree["model"]["dropout"] = 0.1;
    expect_error(tree, unsupported, "dropout");
    tree = with_a_gap();
    tree["model"]["end_of_word_suffix"] = "</w>";
    expect_error(tree, unsupported, "end_of_word_suffix");
    tree = with_a_gap();
    tree["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
    tree["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
    expect_error(tree, unsupported, "prepend_scheme 'first'");
    tree = with_a_gap();
    tree["new_stage"] = 1;
    expect_error(tree, unsupported, "'new_stage'");
}

TEST(Loading, MissingOrWrongFieldsAreErrors) {
    const auto corrupt = ErrorKind::CorruptFile;
    expect_error(std::string("[]"), corrupt, "not an object");
    expect_error(std::string("{"), corrupt, "not valid JSON");
    expect_error(std::string("{}"), corrupt, "'model'");
    json tree = with_a_gap();
    tree["model"]["vocab"]["a"] = "x";
    expect_error(tree, corrupt, "vocab");
    tree = with_a_gap();
    tree["model"]["merges"] = {{"a", "b", "c"}};
    expect_error(tree, corrupt, "merge 0 has 3 tokens");
    tree = with_a_gap();
    tree["pre_tokenizer"] = {{"type", "Split"}, {"pattern", "a"}, {"behavior", "Isolated"}};
    expect_error(tree, corrupt, "pre_tokenizer Split pattern");
    tree = with_a_gap();
    tree["decoder"] = {{"type", "Strip"}, {"content", " "}};
    expect_error(tree, corrupt, "'start'");
    expect_error(std::string(100000, '['), corrupt, "nested too deeply");
}

json unigram_tree() {
    return json::parse(
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["b", -2]]}})");
}

TEST(Loading, UnigramThatContradictsItself) {
    const auto corrupt = ErrorKind::CorruptFile;
    const Tokenizer t = Tokenizer::from_json(unigram_tree().dump());
    EXPECT_EQ(t.encode("abxxa"), (std::vector<TokenId>{1, 2, 0, 1}));
    json tree = unigram_tree();
    tree["model"]["unk_id"] = 3;
    expect_error(tree, corrupt, "unk_id of model Unigram is 3");
    tree["model"]["unk_id"] = -1;
    expect_error(tree, corrupt, "unk_id");
    tree = unigram_tree();
    tree["model"]["vocab"].push_back({"a", -3});
    EXPECT_EQ(Tokenizer::from_json(tree.dump()).encode("ab"), (std::vector<TokenId>{3, 2})) << "the last one counts";
    tree = unigram_tree();
    tree["model"]["vocab"].push_back({"<unk>", -3});
    tree["added_tokens"] = json::parse(R"([{"id": 3, "content": "<unk>", "special": true}])");
    const Tokenizer twins = Tokenizer::from_json(tree.dump());
    EXPECT_EQ(twins.encode("a<unk>x"), (std::vector<TokenId>{1, 3, 0}));
    EXPECT_TRUE(twins.is_special(0) && twins.is_special(3)) << "both are spelled like the special token";
    tree = unigram_tree();
    tree["model"]["vocab"].push_back({"", -3});
    expect_error(tree, corrupt, "token 3 of model Unigram is empty");
    for (const char* entry : {R"(["a"])", R"([1, "a"])", R"(["a", "b"])", R"(["a", 1, 2])", R"("a")", "1", "[]"}) {
        tree = unigram_tree();
        tree["model"]["vocab"].push_back(json::parse(entry));
        expect_error(tree, corrupt, entry[0] == '[' ? "token 3" : "vocab");
    }
    tree = unigram_tree();
    tree["model"]["vocab"] = json::object({{"a", 0}});
    expect_error(tree, corrupt, "not scores");
    tree = unigram_tree();
    tree["model"]["vocab"].push_back({std::string(513, 'x'), -3});
    expect_error(tree, ErrorKind::Unsupported, "513 bytes");
}

TEST(Loading, ScoresAreRoundedAsHuggingFaceRoundsThem) {
    // Two long tokens and a short one, in any order: the sums are equal but for the last bit. Only with the second
    // score read as 9949181543298291 / 10^15, which is not the nearest double, the short one comes last, as in the
    // package.
    const Tokenizer t = Tokenizer::from_json(
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", -20], ["a", -8.779234769587376],
        ["aa", -9.949181543298291]]}})");
    EXPECT_EQ(t.encode("aaaaa"), (std::vector<TokenId>{2, 2, 1}));
}

TEST(Loading, WithoutAnUnknownTokenACharacterThatHasNoneIsAnError) {
    json tree = unigram_tree();
    tree["model"].erase("unk_id");
    const Tokenizer t = Tokenizer::from_json(tree.dump());
    EXPECT_EQ(t.encode("ab"), (std::vector<TokenId>{1, 2}));
    try {
        (void)t.encode("a\u00e9");
        ADD_FAILURE() << "accepted";
    } catch (const ggmlx::Error& e) {
        EXPECT_NE(std::string(e.what()).find("\u00e9"), std::string::npos) << e.what();
    }
    tree = with_a_gap();
    tree["model"]["unk_token"] = "<none>";
    expect_error(tree, ErrorKind::CorruptFile, "'<none>'");
}

TEST(Loading, DamagedCharsmaps) {
    const auto with_map = [](const std::string& base64) {
        json tree = with_a_gap();
        tree["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", base64}};
        return tree;
    };
    expect_error(with_map("?"), ErrorKind::CorruptFile, "base64");
    expect_error(with_map(""), ErrorKind::CorruptFile, "cut short");
    expect_error(with_map("AAAA"), ErrorKind::CorruptFile, "cut short");
    expect_error(with_map("/////w=="), ErrorKind::CorruptFile, "cut short");
    expect_error(with_map("BAAAAAAAAAD/"), ErrorKind::CorruptFile, "not UTF-8");
    // A trie of one unit that leads nowhere, and one that leads far outside: no rule.
    EXPECT_EQ(Tokenizer::from_json(with_map("BAAAAAAAAAA=").dump()).encode("ab"), (std::vector<TokenId>{8}));
    EXPECT_EQ(Tokenizer::from_json(with_map("BAAAAP////8=").dump()).encode("ab"), (std::vector<TokenId>{8}));
}

TEST(Loading, ListsOfStagesHoldObjects) {
    const std::pair<const char*, const char*> lists[] = {{"normalizer", "normalizers"},
                                                         {"pre_tokenizer", "pretokenizers"},
                                                         {"decoder", "decoders"},
                                                         {"post_processor", "processors"}};
    for (const auto& [stage, list] : lists) {
        json tree = with_a_gap();
        tree[stage] = {{"type", "Sequence"}, {list, json::array({nullptr})}};
        expect_error(tree, ErrorKind::CorruptFile, list);
    }
}

TEST(Loading, MergesCannotGoInCircles) {
    // What merges give must be a token, and that is longer than its parts; an empty part never comes up.
    json tree = with_a_gap();
    tree["model"]["vocab"][""] = 20;
    tree["model"]["merges"] = json::parse(R"([["a", ""], ["", "a"], ["a", "b"], ["a", "b"], ["c", "d"]])");
    const Tokenizer t = Tokenizer::from_json(tree.dump());
    EXPECT_EQ(t.encode("abcda"), (std::vector<TokenId>{8, 9, 0}));
    tree["model"]["merges"] = json::parse(R"([["ab", "ab"]])");
    expect_error(tree, ErrorKind::CorruptFile, "'abab'");
}

TEST(Loading, AddedTokensThatCannotBeFound) {
    json tree = with_a_gap();
    tree["added_tokens"][0]["content"] = std::string(1025, 'x');
    expect_error(tree, ErrorKind::Unsupported, "1025 bytes");
    tree = with_a_gap();
    tree["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
    tree["added_tokens"][0] = {{"id", 11}, {"content", "  "}, {"normalized", true}};
    expect_error(tree, ErrorKind::Unsupported, "takes away");
}

TEST(Loading, HugeExpressionsAndContentsAreErrors) {
    json tree = with_a_gap();
    const auto split_at = [&](const std::string& regex) {
        tree["pre_tokenizer"] = {
            {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
        return tree;
    };
    expect_error(split_at(std::string(100000, 'a')), ErrorKind::CorruptFile, "cannot compile");
    expect_error(split_at(std::string(10000, '(') + std::string(10000, ')')), ErrorKind::CorruptFile, "cannot compile");
    const Tokenizer exploding = Tokenizer::from_json(split_at("(?:a+)+[xy]").dump());
    try {
        (void)exploding.encode(std::string(60, 'a'));
        ADD_FAILURE() << "accepted";
    } catch (const ggmlx::Error& e) {
        EXPECT_NE(std::string(e.what()).find("(?:a+)+[xy]"), std::string::npos) << e.what();
    }
    tree = with_a_gap();
    tree["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1 << 20, 'b')}};
    const Tokenizer growing = Tokenizer::from_json(tree.dump());
    EXPECT_THROW((void)growing.encode(std::string(1 << 12, 'a')), ggmlx::Error);
}

TEST(Loading, EveryCutOfAFileIsAnError) {
    const std::string text = with_a_gap().dump();
    for (size_t n = 0; n < text.size(); ++n)
        EXPECT_THROW(Tokenizer::from_json(text.substr(0, n)), ggmlx::Error) << text.substr(0, n);
}

TEST(Loading, ConfigAddsBosOnlyWhereThePostProcessorAddsNothing) {
    const std::string config =
        R"({"add_bos_token": true, "add_eos_token": true, "bos_token": {"content": "<x>"}, "eos_token": "cd"})";
    json tree = with_a_gap();
    EXPECT_EQ(Tokenizer::from_json(tree.dump(), config).encode("a"), (std::vector<TokenId>{11, 0, 9}));
    tree["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};
    EXPECT_EQ(Tokenizer::from_json(tree.dump(), config).encode("a"), (std::vector<TokenId>{11, 0, 9}));
    tree["post_processor"] =
        json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "h", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"h": {"id": "h", "ids": [7], "tokens": ["h"]}}})");
    const Tokenizer t = Tokenizer::from_json(tree.dump(), config);
    EXPECT_EQ(t.encode("a"), (std::vector<TokenId>{7, 0}));
    EXPECT_EQ(t.encode("a", {.add_special = false}), (std::vector<TokenId>{0}));
    tree["post_processor"]["special_tokens"]["h"]["ids"][0] = 10;
    expect_error(tree, ErrorKind::CorruptFile, "id 10");
    expect_error(with_a_gap().dump(), ErrorKind::CorruptFile, "bos_token '<y>'",
                 R"({"add_bos_token": true, "bos_token": "<y>"})");
    expect_error(with_a_gap().dump(), ErrorKind::CorruptFile, "tokenizer_config.json", "[");
}

TEST(Loading, AddedTokensInPlainTextStayText) {
    json tree = with_a_gap();
    tree["added_tokens"].push_back({{"id", 12}, {"content", "ef"}, {"special", false}, {"normalized", true}});
    tree["added_tokens"].push_back({{"id", 13}, {"content", "  "}, {"special", false}, {"normalized", false}});
    const Tokenizer t = Tokenizer::from_json(tree.dump());
    EXPECT_EQ(t.encode("aef<x>  a"), (std::vector<TokenId>{0, 12, 11, 13, 0}));
    EXPECT_EQ(t.encode("aef<x>  a", {.parse_special = false}), (std::vector<TokenId>{0, 4, 5, 13, 0}));
}

}  // namespace
}  // namespace llm::test
