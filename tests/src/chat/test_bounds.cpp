// Templates that would run for ever, fill the memory or overflow the stack end in errors.

#include "tests/src/chat/support.h"

namespace llm::test {
namespace {

RenderOptions small_limits() {
    RenderOptions options;
    options.limits.max_steps = 200'000;
    options.limits.max_memory = 4 << 20;
    options.limits.max_output = 100'000;
    return options;
}

void expect_limit(const std::string& source, const std::string& part) {
    const std::string error = error_of(source, ordered_json::object(), small_limits());
    EXPECT_NE(error.find(part), std::string::npos) << source << "\n" << error.substr(0, 300);
}

std::string repeated(const std::string& text, size_t n) {
    std::string result;
    while (n-- > 0) result += text;
    return result;
}

TEST(Bounds, Steps) {
    expect_limit("{% set r = range(999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}", "runs too long");
    expect_limit("{% macro m() %}{% for i in range(9) %}{{ m() }}{% endfor %}{% endmacro %}{{ m() }}", "too deeply");
    expect_limit("{% set s = 'ab' * 50000 %}{% for a in range(9999) %}{% if 'x' in s %}{% endif %}{% endfor %}",
                 "runs too long");
}

TEST(Bounds, Memory) {
    expect_limit("{{ 'x' * 9999999999 }}", "too much memory");
    expect_limit("{{ [0] * 9999999999 }}", "too much memory");
    expect_limit("{{ 'x'.center(9999999999) }}", "too much memory");
    expect_limit("{{ 'x'|indent(9999999999) }}", "too much memory");
    expect_limit("{{ [1]|batch(9999999999, 'x')|list }}", "too much memory");
    expect_limit("{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
                 "too much memory");
    expect_limit("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
                 "too ");  // much memory, or long
    expect_limit(
        "{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('a', 'aaa') %}"
        "{% endfor %}",
        "too ");  // much memory, or long
    expect_limit("{{ '%9999999999d' % 1 }}", "over 4096");
    expect_limit("{{ '{:.999999999}'.format(1.5) }}", "over 4096");
}

TEST(Bounds, MemoryOfStringsIsGivenBack) {
    EXPECT_EQ(render("{% for i in range(1000) %}{% set s = 'x' * 100000 %}{% endfor %}done", ordered_json::object(),
                     [] {
                         RenderOptions options;
                         options.limits.max_memory = 4 << 20;
                         return options;
                     }()),
              "done");
}

TEST(Bounds, Output) {
    expect_limit("{% for i in range(9999) %}{{ 'x' * 100 }}{% endfor %}", "output is too long");
    expect_limit("{% set s %}{% for i in range(9999) %}{{ 'x' * 100 }}{% endfor %}{% endset %}", "output is too long");
}

TEST(Bounds, DepthOfCalls) {
    expect_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply");
    expect_limit(
        "{% macro m() %}{{ caller() }}{% call m() %}y{% endcall %}{% endmacro %}"
        "{% call m() %}x{% endcall %}",
        "too deeply");
    expect_limit("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "too deeply");
    expect_limit("{% macro m(a) %}{{ m([a]) }}{% endmacro %}{{ m(1) }}", "too deeply");
}

TEST(Bounds, DepthOfValues) {
    const std::string deep =
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    const std::string deep_tuple =
        "{% set ns = namespace(x=()) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}"
        "{% endfor %}";
    expect_limit(deep + "{{ ns.x }}", "too deeply");
    expect_limit(deep + "{{ ns.x|tojson }}", "too deeply");
    expect_limit(deep + "{{ ns.x == [ns.x] }}", "too deeply");
    expect_limit(deep_tuple + "{{ {ns.x: 1} }}", "too deeply");
    expect_limit(deep_tuple + "{{ ns.x < (ns.x,) }}", "too deeply");
    expect_limit("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "too deeply");
    EXPECT_EQ(render(deep + "fine"), "fine");
}

TEST(Bounds, ValuesThatBranchTakeSteps) {
    const std::string wide =
        "{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}";
    expect_limit(wide + "{{ ns.x|tojson }}", "runs too long");
    expect_limit(wide + "{% set a = ns.x|string %}", "runs too long");
}

TEST(Bounds, DepthOfTheSource) {
    for (const auto& [open, close] : {std::pair<std::string, std::string>{"(", ")"}, {"[", "]"}, {"{1:", "}"}}) {
        const std::string source = "{{ " + repeated(open, 100'000) + "1" + repeated(close, 100'000) + " }}";
        expect_limit(source, "too deeply");
    }
    expect_limit("{{ " + repeated("not ", 100'000) + "1 }}", "too deeply");
    expect_limit("{{ " + repeated("- ", 100'000) + "1 }}", "too deeply");
    expect_limit("{{ 1" + repeated(" + 1", 100'000) + " }}", "too long");
    expect_limit("{{ x" + repeated(".x", 100'000) + " }}", "too long");
    expect_limit("{{ x" + repeated("|list", 100'000) + " }}", "too long");
    expect_limit("{{ 1" + repeated(" if 1 else 1", 100'000) + " }}", "too deeply");
    expect_limit(repeated("{% if 1 %}", 100'000), "too deeply");
    expect_limit(repeated("{% for x in y %}", 100'000), "too deeply");
    EXPECT_EQ(render("{{ " + repeated("(", 100) + "1" + repeated(")", 100) + repeated(" + 1", 200) + " }}"), "201");
}

TEST(Bounds, ExpressionsAsDeepAsAllowedAreEvaluated) {
    EXPECT_EQ(render("{{ 0" + repeated(" + 1", 390) + " }}"), "390");
    const std::string nested = repeated("{% if true %}", 140) + "x" + repeated("{% endif %}", 140);
    EXPECT_EQ(render(nested), "x");
}

TEST(Bounds, InputNestedTooDeeplyIsRefused) {
    ordered_json deep = "x";
    for (int i = 0; i < 1000; ++i) deep = ordered_json::array({std::move(deep)});
    EXPECT_NE(error_of("{{ x|length }}", {{"x", deep}}).find("too deeply"), std::string::npos);
}

TEST(Bounds, LongTextsTakeLinearTime) {
    const std::string text(4 << 20, 'a');
    const std::string source =
        "{{ x.split('b')|length }}{{ x.replace('b', 'c')|length }}{{ x.strip()|length }}"
        "{{ 'aab' in x }}{{ x[1:]|length }}{{ x.count('a') }}";
    EXPECT_EQ(render(source, {{"x", text}}), "141943044194304False41943034194304");
}

}  // namespace
}  // namespace llm::test
