#include "src/chat/runtime.h"

namespace llm::jinja {
namespace {

/// Gives its size back when it goes.
struct CountedText : Text {
    CountedText(Text&& text, std::shared_ptr<size_t> total) : Text(std::move(text)), total_(std::move(total)) {
        *total_ += size();
    }
    CountedText(const CountedText&) = delete;
    CountedText& operator=(const CountedText&) = delete;
    ~CountedText() { *total_ -= size(); }

  private:
    size_t size() const { return sizeof(*this) + bytes.size() + runs.size() * sizeof(Run); }
    std::shared_ptr<size_t> total_;
};

}  // namespace

void Runtime::spend(size_t steps) {
    steps_ += steps;
    if (steps_ > limits_.max_steps) refuse("the template runs too long (more than {} steps)", limits_.max_steps);
}

void Runtime::reserve(size_t bytes) const {
    const size_t used = held_bytes_ + *string_bytes_;
    if (bytes > limits_.max_memory || used + bytes > limits_.max_memory)
        refuse("the template needs too much memory (more than {} bytes)", limits_.max_memory);
}

void Runtime::hold(size_t bytes) {
    reserve(bytes);
    held_bytes_ += bytes;
}

TextPtr Runtime::string(Text text) {
    const size_t size = text.bytes.size();
    reserve(size);
    spend_bytes(size);
    return std::make_shared<const CountedText>(std::move(text), string_bytes_);
}

List* Runtime::list(std::vector<Value> items, ListType type) {
    grow(items.size());
    return make<List>(type, std::move(items));
}

Iterator* Runtime::iterator(std::vector<Value> items) {
    grow(items.size());
    return make<Iterator>(std::move(items));
}

Runtime::Level::Level(Runtime& runtime) : runtime_(runtime) {
    if (runtime.depth_ >= runtime.limits_.max_depth)
        refuse("nested too deeply (more than {} levels)", runtime.limits_.max_depth);
    ++runtime.depth_;
}

}  // namespace llm::jinja
