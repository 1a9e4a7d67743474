// Tokenizers, special tokens and chat templates in GGUF metadata, against the ids that Hugging Face's tokenizers gave
// for the same vocabularies (tests/data/tokenizers).

#include "convert/gguf/tokenizer.h"

#include <gtest/gtest.h>

#include "convert/documents.h"
#include "convert/gguf/config.h"
#include "convert/gguf/pretokenizer.h"
#include "src/config.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/convert/gguf/fixtures.h"
#include "tests/convert/gguf/made_gguf.h"
#include "tests/convert/synthetic.h"

namespace convert {
namespace {

using nlohmann::json;

json test_json(const std::string& name) {
    return json::parse(read_file(std::string(GGMLX_TEST_DATA) + "/tokenizers/" + name));
}

class GgufVocabularyFixture : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabularyFixture, GivesTheTokensOfHuggingFace) {
    const std::string name = GetParam();
    const GgufFile file = GgufFile::open(gguf_fixture(name + ".gguf"));
    std::vector<std::string> notes;
    const auto tokenizer = llm::Tokenizer::from_json(gguf_tokenizer_json(file.metadata(), notes),
                                                     gguf_tokenizer_config_json(file.metadata()));
    const json texts = test_json("corpus.json"), expected = test_json(name + "_expected.json");
    ASSERT_EQ(texts.size(), expected.size());
    for (size_t i = 0; i < texts.size(); ++i) {
        // This token takes the blanks before it along (lstrip), which GGUF does not say.
        if (name == "byte_level" && texts[i].get<std::string>().find("<mask>") != std::string::npos) continue;
        const auto ids = tokenizer.encode(texts[i].get<std::string>());
        EXPECT_EQ(json(ids), expected[i][0]) << texts[i];
        EXPECT_EQ(tokenizer.decode(ids, false), expected[i][1].get<std::string>()) << texts[i];
    }
    EXPECT_TRUE(notes.empty());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufVocabularyFixture, testing::Values("byte_level", "stories260k"),
                         [](const auto& fixture) { return fixture.param; });

/// Byte-level: the letters a to c, two merges, control tokens.
MadeGguf made_tokenizer() {
    MadeGguf made;
    made.text("general.architecture", "llama")
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "llama-bpe")
        .texts("tokenizer.ggml.tokens", {"a", "b", "c", "ab", "abc", "<s>", "<|im_end|>", "<tool>", "[PAD8]", "\u0120"})
        .array<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 1, 1, 3, 3, 4, 5, 1})
        .texts("tokenizer.ggml.merges", {"a b", "ab c"})
        .u32("tokenizer.ggml.bos_token_id", 5)
        .u32("tokenizer.ggml.eos_token_id", 4);
    return made;
}

struct MadeDocuments {
    std::string tokenizer, config, generation;
    std::vector<std::string> notes;
};

MadeDocuments documents_of(MadeGguf made) {
    const std::string bytes = made.bytes();
    const GgufFile file = gguf_of(bytes);
    MadeDocuments result;
    result.tokenizer = gguf_tokenizer_json(file.metadata(), result.notes);
    result.config = gguf_tokenizer_config_json(file.metadata());
    result.generation = gguf_generation_config_json(file.metadata());
    return result;
}

std::vector<llm::TokenId> encode(const MadeDocuments& documents, const std::string& text) {
    return llm::Tokenizer::from_json(documents.tokenizer, documents.config).encode(text);
}

using Ids = std::vector<llm::TokenId>;

TEST(GgufTokenizer, KnowsWhichTokensAreAddedAndWhichAreSpecial) {
    const auto documents = documents_of(made_tokenizer());
    EXPECT_EQ(encode(documents, "abc ba<tool><|im_end|>"), (Ids{5, 4, 9, 1, 0, 7, 6}));
    const auto tokenizer = llm::Tokenizer::from_json(documents.tokenizer, documents.config);
    EXPECT_TRUE(tokenizer.is_special(6));
    EXPECT_FALSE(tokenizer.is_special(7));
    EXPECT_FALSE(tokenizer.has_token(8));
    EXPECT_EQ(tokenizer.decode(Ids{5, 4, 6}), "abc");
}

TEST(GgufTokenizer, AddsBosAndEosAsTheFileSays) {
    EXPECT_EQ(encode(documents_of(made_tokenizer()), "a"), (Ids{5, 0}));  // Llama 3's default
    EXPECT_EQ(encode(documents_of(made_tokenizer().flag("tokenizer.ggml.add_bos_token", false)), "a"), Ids{0});
    EXPECT_EQ(encode(documents_of(made_tokenizer().flag("tokenizer.ggml.add_eos_token", true)), "a"), (Ids{5, 0, 4}));
    MadeGguf other = made_tokenizer();
    other.remove("tokenizer.ggml.pre").text("tokenizer.ggml.pre", "gpt-2");
    EXPECT_EQ(encode(documents_of(other), "a"), Ids{0});
    other.remove("tokenizer.ggml.bos_token_id").flag("tokenizer.ggml.add_bos_token", true);
    EXPECT_CONTAINS(error_of([&] { documents_of(other); }), "bos_token_id");
}

TEST(GgufTokenizer, AnswersEndWhereTheFileOrItsTemplateSaysSo) {
    auto ends = [](MadeGguf made) {
        return llm::GenerationConfig::from_json(documents_of(std::move(made)).generation, "").eos_ids;
    };
    EXPECT_EQ(ends(made_tokenizer()), std::vector<int32_t>{4});
    EXPECT_EQ(ends(made_tokenizer().u32("tokenizer.ggml.eot_token_id", 6)), (std::vector<int32_t>{4, 6}));
    EXPECT_EQ(ends(made_tokenizer().text("tokenizer.chat_template", "{{ m }}<|im_end|>")),
              (std::vector<int32_t>{4, 6}));
    const auto sampling = llm::GenerationConfig::from_json(
        documents_of(made_tokenizer().f32("general.sampling.temp", 0.6f).u32("general.sampling.top_k", 20)).generation,
        "");
    EXPECT_EQ(sampling.temperature, 0.6f);
    EXPECT_EQ(sampling.top_k, 20);
    EXPECT_TRUE(sampling.do_sample);
}

TEST(GgufTokenizer, ChatTemplatesBecomeHuggingFaces) {
    const auto one = json::parse(documents_of(made_tokenizer().text("tokenizer.chat_template", "{{ x }}")).config);
    EXPECT_EQ(one["chat_template"], "{{ x }}");
    EXPECT_EQ(one["bos_token"], "<s>");
    EXPECT_EQ(one["eos_token"], "abc");
    const auto two = documents_of(made_tokenizer()
                                      .text("tokenizer.chat_template", "{{ x }}")
                                      .text("tokenizer.chat_template.tool_use", "{{ y }}"));
    EXPECT_EQ(chat_template_of(two.config), "{{ x }}");
    EXPECT_EQ(json::parse(two.config)["chat_template"][1]["name"], "tool_use");
}

TEST(GgufTokenizer, RefusesWhatItCannotFollow) {
    auto message_for = [](auto change) {
        MadeGguf made = made_tokenizer();
        change(made);
        return error_of([&] { documents_of(made); });
    };
    auto with = [](const std::string& key, const std::string& value) {
        return [key, value](MadeGguf& m) { m.remove(key).text(key, value); };
    };
    EXPECT_CONTAINS(message_for(with("tokenizer.ggml.pre", "martian")), "\"martian\"");
    EXPECT_CONTAINS(message_for(with("tokenizer.ggml.pre", "martian")), "qwen2");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.remove("tokenizer.ggml.pre"); }), "tokenizer.ggml.pre");
    EXPECT_CONTAINS(message_for(with("tokenizer.ggml.model", "bert")), "\"bert\"");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.remove("tokenizer.ggml.tokens"); }), "tokenizer.ggml.tokens");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) { m.remove("tokenizer.ggml.token_type"); }), "0 entries for 10 tokens");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.remove("tokenizer.ggml.eos_token_id").u32("tokenizer.ggml.eos_token_id", 10);
                    }),
                    "eos_token_id is 10, but there are 10 tokens");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.remove("tokenizer.ggml.merges").texts("tokenizer.ggml.merges", {"a b", "ab"});
                    }),
                    "entry 1 is \"ab\"");
    auto with_tokens = [](const std::string& first) {
        return [first](MadeGguf& m) {
            m.remove("tokenizer.ggml.tokens")
                .texts("tokenizer.ggml.tokens",
                       {first, "b", "c", "ab", "abc", "<s>", "<|im_end|>", "<tool>", "[PAD8]", "\u0120"});
        };
    };
    EXPECT_CONTAINS(message_for(with_tokens("b")), "the tokens 0 and 1 are both \"b\"");
    EXPECT_CONTAINS(message_for(with_tokens("\xff")), "not UTF-8");
    EXPECT_CONTAINS(message_for([](MadeGguf& m) {
                        m.remove("tokenizer.ggml.token_type")
                            .array<int32_t>("tokenizer.ggml.token_type", GgufKind::I32, {1, 1, 1, 1, 1, 3, 3, 4, 7, 1});
                    }),
                    "says 7 for token 8");
    EXPECT_CONTAINS(message_for(with("tokenizer.ggml.model", "llama")), "tokenizer.ggml.scores has 0 entries");
}

TEST(GgufTokenizer, SaysWhenTheRuleIsAGuess) {
    MadeGguf made = made_tokenizer();
    made.remove("tokenizer.ggml.pre").text("tokenizer.ggml.pre", "default");
    EXPECT_CONTAINS(documents_of(made).notes.at(0), "GPT-2's rule");
    EXPECT_EQ(documents_of(MadeGguf().text("general.architecture", "llama")).tokenizer, "");
}

TEST(GgufTokenizer, EveryKnownRuleCanBeFollowed) {
    const std::string list = error_of([] { (void)gguf_pretokenizer("", "file"); });
    const size_t begin = list.find("knows ") + 6;
    std::string names = list.substr(begin, list.find(". Convert") - begin) + ", ";
    int64_t n_rules = 0;
    for (size_t comma; (comma = names.find(", ")) != names.npos; names.erase(0, comma + 2), ++n_rules) {
        MadeGguf made = made_tokenizer();
        made.remove("tokenizer.ggml.pre").text("tokenizer.ggml.pre", names.substr(0, comma));
        const auto ids = encode(documents_of(made), "ab c");
        EXPECT_EQ(Ids(ids.end() - 3, ids.end()), (Ids{3, 9, 2})) << names.substr(0, comma);
    }
    EXPECT_EQ(n_rules, 18);
}

}  // namespace
}  // namespace convert
