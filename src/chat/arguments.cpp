#include "src/chat/arguments.h"

#include <algorithm>

#include "src/chat/compare.h"

namespace llm::jinja {

Bound::Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
             size_t n_required)
    : function_(function), parameters_(parameters), values_(parameters.size()) {
    if (arguments.positional.size() > parameters_.size())
        refuse("{}() takes {} argument{} at most, {} were given", function, parameters_.size(),
               parameters_.size() == 1 ? "" : "s", arguments.positional.size());
    for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
    for (const auto& [name, value] : arguments.named) {
        const auto found = std::find(parameters_.begin(), parameters_.end(), name);
        if (found == parameters_.end()) refuse("{}() got an unexpected keyword argument '{}'", function, name);
        const auto i = static_cast<size_t>(found - parameters_.begin());
        if (values_[i]) refuse("{}() got multiple values for argument '{}'", function, name);
        values_[i] = &value;
    }
    for (size_t i = 0; i < n_required; ++i)
        if (!values_[i]) refuse("{}() is missing its argument '{}'", function, parameters_[i]);
}

bool Bound::truth_or(size_t i, bool otherwise) const { return values_[i] ? truthy(*values_[i]) : otherwise; }

int64_t Bound::integer_or(size_t i, int64_t otherwise) const {
    if (!values_[i]) return otherwise;
    require_defined(*values_[i]);
    if (!values_[i]->is_integral())
        refuse("{}(): {} must be a whole number, not {}", function_, parameters_[i], type_name(*values_[i]));
    return values_[i]->integer();
}

const Text& Bound::text(size_t i) const {
    require_defined(*values_[i]);
    if (!values_[i]->is_string())
        refuse("{}(): {} must be str, not {}", function_, parameters_[i], type_name(*values_[i]));
    return values_[i]->text();
}

}  // namespace llm::jinja
