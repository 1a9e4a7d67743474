#pragma once
// Reading the arguments of a function that is built in: by place or by name, as in Python.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "src/chat/runtime.h"

namespace llm::jinja {

/// Binds arguments to parameters. Throws for unknown names, for too many and for one that is given twice.
class Bound {
  public:
    /// function: for messages. n_required: how many of the parameters must be given.
    Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
          size_t n_required = 0);

    const Value* get(size_t i) const { return values_[i]; }  ///< null if it was not given
    const Value& value(size_t i) const { return *values_[i]; }
    Value value_or(size_t i, Value otherwise) const { return values_[i] ? *values_[i] : std::move(otherwise); }
    bool truth_or(size_t i, bool otherwise) const;
    int64_t integer_or(size_t i, int64_t otherwise) const;
    /// Fails if it is no string.
    const Text& text(size_t i) const;
    bool has(size_t i) const { return values_[i] != nullptr; }
    /// Given, and not none.
    bool is_set(size_t i) const { return values_[i] && !values_[i]->is_none(); }

  private:
    std::string_view function_;
    std::vector<std::string_view> parameters_;
    std::vector<const Value*> values_;
};

}  // namespace llm::jinja
