// From a request to a prompt: the choice of the template, special tokens, the order in which messages are put.

#include "src/chat/chat.h"
#include "tests/src/chat/support.h"

namespace llm::test {
namespace {

ordered_json user(ordered_json content) { return {{"role", "user"}, {"content", std::move(content)}}; }

ChatRequest request_of(std::initializer_list<ordered_json> messages) {
    ChatRequest request;
    for (const ordered_json& message : messages) request.messages.push_back(message);
    return request;
}

std::string prompt_of(const ChatFormat& format, const ChatRequest& request) {
    return format.prompt(request, on_date("2026-01-15")).text;
}

std::string failure_of(const ChatFormat& format, const ChatRequest& request) {
    try {
        return "prompt: " + prompt_of(format, request);
    } catch (const ggmlx::Error& error) {
        return error.what();
    }
}

ChatFormat real_format(const std::string& file) {
    return ChatFormat::from_template(read_file(kTemplates + file), file, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

TEST(ChatFiles, OneTemplateAndTokensOfBothForms) {
    const ChatFiles files{.tokenizer_config = R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
        "pad_token": null, "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}"})"};
    EXPECT_EQ(prompt_of(ChatFormat::from_files(files, "m"), request_of({user("x")})), "<s></s>False");
}

TEST(ChatFiles, NamedTemplates) {
    const ChatFiles files{.tokenizer_config = R"({"chat_template": [{"name": "default", "template": "D"},
        {"name": "tool_use", "template": "T"}, {"name": "rag", "template": "R"}]})"};
    const ChatFormat format = ChatFormat::from_files(files, "m");
    ChatRequest request = request_of({user("x")});
    EXPECT_EQ(prompt_of(format, request), "D");
    request.tools = ordered_json::array({{{"type", "function"}}});
    EXPECT_EQ(prompt_of(format, request), "T");
    request.template_name = "rag";
    EXPECT_EQ(prompt_of(format, request), "R");
    request.template_name = "rug";
    EXPECT_NE(failure_of(format, request).find("rag"), std::string::npos);
}

TEST(ChatFiles, AFileOfItsOwnWins) {
    ChatFiles files{.tokenizer_config = R"({"chat_template": "config"})", .chat_template = "own"};
    EXPECT_EQ(prompt_of(ChatFormat::from_files(files, "m"), request_of({user("x")})), "own");
    files = {.chat_template_json = R"({"chat_template": "json"})"};
    EXPECT_EQ(prompt_of(ChatFormat::from_files(files, "m"), request_of({user("x")})), "json");
    EXPECT_TRUE(has_chat_template(files));
    EXPECT_FALSE(has_chat_template({.tokenizer_config = R"({"chat_template": null})"}));
}

TEST(ChatFiles, BrokenOnesAreNamed) {
    const auto failure = [](const ChatFiles& files) -> std::string {
        try {
            ChatFormat::from_files(files, "model");
        } catch (const ggmlx::Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(failure({}),
              "model has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)");
    EXPECT_EQ(failure({.tokenizer_config = "["}), "model: tokenizer_config.json is no JSON object");
    EXPECT_EQ(failure({.chat_template = "\n{% if %}"}).substr(0, 9), "model:2: ");
}

TEST(ChatMessages, EmptyContentsBesideToolCallsAreTheSame) {
    const ordered_json call = {
        {"id", "call00001"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", {{"a", 1}}}}}};
    for (const char* file : {"Qwen-Qwen3-0.6B.jinja", "deepseek-ai-DeepSeek-V3.1.jinja", "GLM-4.6.jinja",
                             "openai-gpt-oss-120b.jinja", "Mistral-Small-3.2-24B-Instruct-2506.jinja"}) {
        SCOPED_TRACE(file);
        const ChatFormat format = real_format(file);
        std::vector<std::string> prompts;
        for (const ordered_json& content : {ordered_json(""), ordered_json(), ordered_json::array(), ordered_json(0)}) {
            ordered_json message = {{"role", "assistant"}, {"content", content}, {"tool_calls", {call}}};
            if (content.is_number()) message.erase("content");
            const ordered_json result = {{"role", "tool"}, {"tool_call_id", "call00001"}, {"content", "4"}};
            prompts.push_back(prompt_of(format, request_of({user("x"), message, result})));
        }
        for (const std::string& prompt : prompts) EXPECT_EQ(prompt, prompts.front());
    }
}

TEST(ChatMessages, TextPartsAreAccepted) {
    const ordered_json parts = {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}};
    for (const char* file :
         {"Qwen-Qwen3-0.6B.jinja", "Qwen-Qwen2.5-7B-Instruct.jinja", "GLM-4.6.jinja", "Qwen3.5-4B.jinja",
          "microsoft-Phi-3.5-mini-instruct.jinja", "openai-gpt-oss-120b.jinja"}) {
        SCOPED_TRACE(file);
        const ChatFormat format = real_format(file);
        EXPECT_EQ(prompt_of(format, request_of({user(parts)})), prompt_of(format, request_of({user("ab")})));
    }
}

TEST(ChatMessages, WrongOnesAreNamed) {
    const ChatFormat format = ChatFormat::from_template("{{ messages }}", "t");
    EXPECT_EQ(failure_of(format, request_of({user({{{"type", "image_url"}, {"image_url", "x"}}})})),
              "messages[0].content[0] has the type \"image_url\"; only \"text\" is supported");
    EXPECT_EQ(failure_of(format, request_of({user("x"), {{"content", "y"}}})), "messages[1] has no \"role\"");
    EXPECT_EQ(failure_of(format, request_of({user(5)})), "messages[0].content must be a text or a list of parts");
    EXPECT_EQ(failure_of(format, request_of({})), "\"messages\" must be a list with at least one message");
    EXPECT_EQ(failure_of(format, request_of({"x"})), "messages[0] is no object");
}

TEST(ChatMessages, NullMembersAndOldNamesOfReasoning) {
    const ChatFormat format =
        ChatFormat::from_template("{{ messages[0].keys()|list }}{{ messages[0].reasoning_content }}", "t");
    const ordered_json message = {
        {"role", "assistant"}, {"content", "x"}, {"tool_calls", nullptr}, {"reasoning", "why"}};
    EXPECT_EQ(prompt_of(format, request_of({message})),
              "['role', 'content', 'reasoning', 'thinking', 'reasoning_content']why");
}

TEST(ChatMessages, ArgumentsBecomeObjectsWhereTextWouldBeQuotedAgain) {
    const auto with_arguments = [](const ordered_json& arguments) {
        const ordered_json call = {
            {"id", "call00001"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
        const ordered_json result = {{"role", "tool"}, {"tool_call_id", "call00001"}, {"content", "4"}};
        return request_of({user("x"), {{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}}, result});
    };
    for (const char* file :
         {"openai-gpt-oss-120b.jinja", "Qwen3.5-4B.jinja", "GLM-4.7-Flash.jinja", "Qwen-Qwen3-0.6B.jinja"}) {
        SCOPED_TRACE(file);
        const ChatFormat format = real_format(file);
        EXPECT_EQ(prompt_of(format, with_arguments(R"({"city": "Oslo"})")),
                  prompt_of(format, with_arguments({{"city", "Oslo"}})));
    }
}

TEST(ChatPrompt, VariablesReachTheTemplate) {
    const ChatFormat format =
        ChatFormat::from_template("{{ tools is none }}{{ documents }}{{ add_generation_prompt }}{{ x }}{{ bos_token }}",
                                  "t", {{"bos_token", "<s>"}});
    ChatRequest request = request_of({user("hi")});
    request.variables = {{"x", 7}};
    EXPECT_EQ(prompt_of(format, request), "TrueNoneTrue7<s>");
    request.variables["bos_token"] = "other";
    request.add_generation_prompt = false;
    EXPECT_EQ(prompt_of(format, request), "TrueNoneFalse7other");
}

TEST(ChatPrompt, TheLastMessageCanBeLeftOpen) {
    const char* source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}";
    ChatRequest request = request_of({user("hi"), {{"role", "assistant"}, {"content", "I am "}}});
    request.add_generation_prompt = false;
    request.continue_final_message = true;
    const ChatFormat format = ChatFormat::from_template(source, "t");
    const Prompt prompt = format.prompt(request);
    EXPECT_EQ(prompt.text, "<user>hi</><assistant>I am ");
    EXPECT_EQ(prompt.runs.back(), (llm::Run{prompt.text.size(), Origin::Assistant}));
    const char* trimming = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}";
    EXPECT_EQ(prompt_of(ChatFormat::from_template(trimming, "t"), request), "<user>hi</><assistant>I am");
    EXPECT_NE(failure_of(ChatFormat::from_template("{{ messages|length }}", "t"), request).find("does not appear"),
              std::string::npos);
    request.add_generation_prompt = true;
    EXPECT_NE(failure_of(format, request).find("exclude"), std::string::npos);
}

TEST(Dates, AreDaysOfTheCalendar) {
    EXPECT_EQ(render("{{ strftime_now('%A %d %B %Y, day %j') }}", {}, on_date("2024-02-29")),
              "Thursday 29 February 2024, day 060");
    for (const char* wrong : {"2023-02-29", "2024-13-01", "2024-1-01", "", "today", "2024-02-2x", "20240-2-01"})
        EXPECT_THROW(parse_date(wrong), ggmlx::Error) << wrong;
}

}  // namespace
}  // namespace llm::test
