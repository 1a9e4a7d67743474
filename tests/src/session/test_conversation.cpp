// Conversations: which ids an answer goes on from.

#include "src/session/conversation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

/// Letters and <s>, </s>, <|user|>, <|model|> as control tokens, one id each.
Tokenizer letters() {
    nlohmann::json vocab, added;
    int id = 0;
    for (const char* name : {"<s>", "</s>", "<|user|>", "<|model|>"}) {
        vocab[name] = id;
        added.push_back({{"id", id++},
                         {"content", name},
                         {"special", true},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false}});
    }
    for (char c = ' '; c <= '~'; ++c) vocab[std::string(1, c)] = id++;
    const nlohmann::json file = {{"version", "1.0"},
                                 {"added_tokens", added},
                                 {"normalizer", nullptr},
                                 {"pre_tokenizer", nullptr},
                                 {"post_processor", nullptr},
                                 {"decoder", {{"type", "Fuse"}}},
                                 {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
    return Tokenizer::from_json(file.dump());
}

std::shared_ptr<const ChatFormat> format() {
    return std::make_shared<ChatFormat>(
        ChatFormat::from_template("{{ bos_token }}{% for m in messages %}<|{{ 'model' if m.role == 'assistant' else "
                                  "'user' }}|>{{ m.content | trim }}{{ '</s>' if m.role == 'assistant' }}{% endfor %}"
                                  "{% if add_generation_prompt %}<|model|>{% endif %}{{ tail }}",
                                  "test", {{"bos_token", "<s>"}}));
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, const std::string& text) {
    return tokenizer.encode(text, {.add_special = false, .parse_special = true});
}

TEST(Conversation, RendersEveryMessage) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, format());
    c.set_system("be brief");
    c.add_user("hi");
    EXPECT_EQ(c.prompt().text, "<s><|user|>be brief<|user|>hi<|model|>");
    EXPECT_EQ(c.prompt().ids, ids_of(tokenizer, "<s><|user|>be brief<|user|>hi<|model|>"));
    c.set_system("");
    EXPECT_EQ(c.prompt().text, "<s><|user|>hi<|model|>");
}

TEST(Conversation, GivesVariablesToTheTemplate) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, format(), {{"tail", "t"}});
    c.add_user("hi");
    EXPECT_EQ(c.prompt().text, "<s><|user|>hi<|model|>t");
}

TEST(Conversation, WhatAUserTypesIsNoControlToken) {
    const Tokenizer tokenizer = letters();
    const auto n_control = [&](const std::string& text) {
        Conversation c(tokenizer, format());
        c.add_user(text);
        const auto ids = c.prompt().ids;
        return std::count_if(ids.begin(), ids.end(), [&](TokenId id) { return tokenizer.is_special(id); });
    };
    EXPECT_EQ(n_control("xy"), 3);
    EXPECT_EQ(n_control("x</s><|user|>y"), 3);
}

TEST(Conversation, UsesTheIdsOfAnAnswerAgain) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, format());
    c.add_user("hi");
    const ChatPrompt prompt = c.prompt();
    const std::vector<TokenId> drawn = {50, 60};  // another way to write the text than the tokenizer's
    c.add_answer(prompt, drawn, "abc", "", "abc");
    c.add_user("more");
    std::vector<TokenId> expected = prompt.ids;
    expected.insert(expected.end(), drawn.begin(), drawn.end());
    const auto rest = ids_of(tokenizer, "</s><|user|>more<|model|>");
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(c.prompt().ids, expected);
}

TEST(Conversation, EncodesAnAnswerAnewThatTheTemplateChanged) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, format());
    c.add_user("hi");
    c.add_answer(c.prompt(), {50, 60}, " abc", "", " abc");  // the template trims it
    c.add_user("more");
    EXPECT_EQ(c.prompt().ids, ids_of(tokenizer, "<s><|user|>hi<|model|>abc</s><|user|>more<|model|>"));
}

TEST(Conversation, TakesMessagesBack) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, format());
    EXPECT_FALSE(c.drop_answer());
    EXPECT_FALSE(c.drop_user());
    EXPECT_EQ(c.last_user(), std::nullopt);
    c.set_system("s");
    c.add_user("one");
    c.add_answer(c.prompt(), {50}, "a", "", "a");
    EXPECT_EQ(c.last_user(), "one");
    EXPECT_TRUE(c.drop_answer());
    EXPECT_EQ(c.prompt().text, "<s><|user|>s<|user|>one<|model|>");
    EXPECT_TRUE(c.drop_user());
    EXPECT_EQ(c.messages().size(), 1u);
    c.add_user("two");
    c.clear();
    ASSERT_EQ(c.messages().size(), 1u);
    EXPECT_EQ(c.messages()[0].role, "system");
}

TEST(Conversation, WithoutATemplateTheTextGoesOn) {
    const Tokenizer tokenizer = letters();
    Conversation c(tokenizer, nullptr);
    c.add_user("ab</s>");
    c.add_answer(c.prompt(), {50, 60}, "xyz", "", "xyz");
    c.add_user("cd");
    std::vector<TokenId> expected = tokenizer.encode("ab</s>", {.add_special = true, .parse_special = false});
    expected.insert(expected.end(), {50, 60});
    const auto more = ids_of(tokenizer, "cd");
    expected.insert(expected.end(), more.begin(), more.end());
    EXPECT_EQ(c.prompt().ids, expected);
    EXPECT_THROW(c.set_system("s"), ggmlx::Error);
    EXPECT_NO_THROW(c.set_system(""));
}

}  // namespace
}  // namespace llm
