// The language, construct by construct, against what jinja2 printed (tests/data/chat-templates/make_language.py).

#include "tests/src/chat/support.h"

namespace llm::test {
namespace {

class Language : public testing::TestWithParam<std::string> {};

TEST_P(Language, EqualsJinja2) {
    const auto fixture = ordered_json::parse(read_file(kTemplates + "language.json"));
    const RenderOptions options = on_date(fixture["date"].get<std::string>());
    const auto& cases = fixture["groups"][GetParam()];
    EXPECT_FALSE(cases.empty());
    for (const auto& c : cases) {
        const auto source = c["template"].get<std::string>();
        SCOPED_TRACE(source);
        if (c.contains("text")) {
            std::string text;
            EXPECT_NO_THROW(text = render(source, fixture["variables"], options));
            EXPECT_EQ(text, c["text"].get<std::string>());
        } else {
            EXPECT_THROW(render(source, fixture["variables"], options), ggmlx::Error);
        }
    }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::erase(name, ' ');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Groups, Language,
                         testing::Values("white space", "literals", "numbers", "strings", "containers", "tojson",
                                         "tests", "statements", "errors"),
                         test_name);

}  // namespace
}  // namespace llm::test
