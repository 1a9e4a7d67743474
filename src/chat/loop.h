#pragma once
// The variable `loop` of a for loop, and the items it goes through.

#include <optional>
#include <vector>

#include "src/chat/evaluator.h"

namespace llm::jinja {

/// Items are taken one by one, since the loop's condition may depend on what the body does; those that
/// loop.last, loop.length and loop.nextitem have to know about are taken early.
class Loop : public Object {
  public:
    static constexpr ObjectKind kKind = ObjectKind::Loop;
    Loop(Evaluator& evaluator, const For& node, std::vector<Value> items, ScopePtr scope, int64_t depth);

    /// Goes on to the next item; false at the end.
    bool advance();
    /// Gives the items back when the loop has ended; a template may still hold the variable.
    void release();
    const Value& current() const { return taken_[static_cast<size_t>(index_)]; }

    std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
    /// loop(items) in a recursive loop.
    Value call(Runtime& runtime, Arguments& arguments) override;

    std::string repr() override { return fmt::format("<LoopContext {}/{}>", index_ + 1, n_items()); }
    std::optional<int64_t> length() override { return n_items(); }

  private:
    Evaluator& evaluator_;
    const For& node_;
    std::vector<Value> source_;
    size_t next_ = 0;  // in source_
    std::vector<Value> taken_;
    int64_t index_ = -1;
    ScopePtr scope_;
    int64_t depth_;
    std::optional<List*> last_changed_;

    /// Takes one more item that meets the condition; false if there is none.
    bool take();
    bool has_next() { return static_cast<size_t>(index_ + 1) < taken_.size() || take(); }
    int64_t n_items();
    size_t counted_ = 0;  // values that were counted as memory
    int64_t final_length_ = 0;
    bool released_ = false;
    Value changed(Runtime& runtime, const Arguments& arguments);
};

}  // namespace llm::jinja
