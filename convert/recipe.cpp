#include "convert/recipe.h"

#include "ggmlx/core/regex.h"
#include "ggmlx/core/suggest.h"
#include "ggmlx/quant/quantize.h"

namespace convert {
namespace {

using ggmlx::DType;
using ggmlx::ErrorKind;
using ggmlx::Role;
using llm::TensorSpec;

bool is_weight_type(DType dtype) { return dtype != DType::I32 && dtype != DType::F8_E4M3; }

std::string weight_type_names() {
    std::string names;
    for (uint32_t id = 0; id < ggmlx::kDTypeCount; ++id)
        if (const auto dtype = *ggmlx::dtype_from_id(id); is_weight_type(dtype))
            names += (names.empty() ? "" : ", ") + std::string(ggmlx::name(dtype));
    return names;
}

/// A rule with its pattern compiled, and how often it decided.
struct Matcher {
    const TypeRule* rule;
    ggmlx::Regex regex;
    int64_t n_matches = 0;
};

std::vector<Matcher> compile(const std::vector<TypeRule>& rules) {
    std::vector<Matcher> matchers;
    for (const TypeRule& rule : rules) matchers.push_back({&rule, ggmlx::Regex(rule.pattern)});
    return matchers;
}

/// What the first matching rule says. Later rules that match are counted too: being overruled is no mistake.
std::optional<DType> match(std::vector<Matcher>& matchers, const std::string& name) {
    std::optional<DType> first;
    for (Matcher& matcher : matchers) {
        if (!matcher.regex.search(name)) continue;
        ++matcher.n_matches;
        if (!first) first = matcher.rule->dtype;
    }
    return first;
}

void require_all_matched(const std::vector<Matcher>& matchers, const std::vector<TensorSpec>& specs) {
    for (const Matcher& matcher : matchers) {
        if (matcher.n_matches > 0) continue;
        std::vector<std::string> matrices;
        bool matches_vector = false;
        for (const TensorSpec& spec : specs) {
            if (spec.quantizable) matrices.push_back(spec.name);
            matches_vector = matches_vector || (!spec.quantizable && matcher.regex.search(spec.name));
        }
        const std::string& pattern = matcher.rule->pattern;
        ggmlx::require(!matches_vector, ErrorKind::InvalidArgument,
                       "the type rule \"{}={}\" matches only vectors, norms or routers, which stay f32", pattern,
                       ggmlx::name(matcher.rule->dtype));
        ggmlx::fail(ErrorKind::InvalidArgument, "the type rule \"{}={}\" matches no tensor{}", pattern,
                    ggmlx::name(matcher.rule->dtype), ggmlx::did_you_mean(pattern, matrices));
    }
}

std::optional<DType> type_for_role(const Recipe& recipe, Role role) {
    if (role == Role::Output && recipe.output_type) return recipe.output_type;
    if (role == Role::Embedding && recipe.embedding_type) return recipe.embedding_type;
    return recipe.type;
}

void refuse_fallbacks(const std::vector<TypeChoice>& choices, const std::vector<TensorSpec>& specs) {
    std::string list;
    for (size_t i = 0; i < specs.size(); ++i)
        if (choices[i].fell_back())
            list += fmt::format("\n  {}: rows of {} values, {} has blocks of {}", specs[i].name, specs[i].shape[-1],
                                ggmlx::name(choices[i].wanted), ggmlx::info(choices[i].wanted).block_len);
    ggmlx::require(list.empty(), ErrorKind::InvalidArgument,
                   "--strict-type: the type does not fit these tensors; choose another for them with "
                   "--tensor-type, or leave --strict-type out:{}",
                   list);
}

}  // namespace

DType parse_weight_type(std::string_view text) {
    const auto dtype = ggmlx::dtype_from_name(text);
    ggmlx::require(dtype && is_weight_type(*dtype), ErrorKind::InvalidArgument,
                   "\"{}\" is no type of weights; there are {}", text, weight_type_names());
    return *dtype;
}

TypeRule parse_type_rule(std::string_view text) {
    const size_t split = text.rfind('=');
    ggmlx::require(split != text.npos && split > 0, ErrorKind::InvalidArgument,
                   "the type rule \"{}\" is not REGEX=TYPE", text);
    TypeRule rule{std::string(text.substr(0, split)), parse_weight_type(text.substr(split + 1))};
    (void)ggmlx::Regex(rule.pattern);
    return rule;
}

std::vector<TypeChoice> choose_types(const Recipe& recipe, const std::vector<TensorSpec>& specs,
                                     const std::function<DType(const TensorSpec&)>& own_type) {
    std::vector<Matcher> matchers = compile(recipe.rules);
    std::vector<TypeChoice> choices;
    for (const TensorSpec& spec : specs) {
        TypeChoice choice;
        if (spec.quantizable) {
            auto wanted = match(matchers, spec.name);
            if (!wanted) wanted = type_for_role(recipe, spec.role);
            choice.wanted = wanted ? *wanted : own_type(spec);
            choice.dtype = ggmlx::storable_type(choice.wanted, spec.shape[-1]);
        }
        choices.push_back(choice);
    }
    require_all_matched(matchers, specs);
    if (recipe.strict_type) refuse_fallbacks(choices, specs);
    return choices;
}

}  // namespace convert
