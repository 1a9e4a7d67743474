#pragma once
// What one rendering has: its limits, its memory, its clock. Everything that takes time or memory asks here first, so a
// template can neither run for ever nor fill the memory.

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ggmlx/core/error.h"
#include "src/chat/template.h"
#include "src/chat/value.h"

namespace llm::jinja {

/// Throws invalid_argument: what a template did wrong. The place is added where rendering began.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
    ggmlx::fail(ggmlx::ErrorKind::InvalidArgument, format, std::forward<Args>(args)...);
}

class Runtime {
  public:
    Runtime(const RenderLimits& limits, const std::tm& time, bool allow_mutation)
        : mutable_lists(allow_mutation), now(time), limits_(limits) {}
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    const bool mutable_lists;  ///< list.append and the like are allowed
    const std::tm now;

    /// Work that is about to be done; one step is about an operation.
    void spend(size_t steps);
    /// Work on so many bytes.
    void spend_bytes(size_t n) { spend(n / kBytesPerStep); }
    /// Fails unless so many more bytes may be held; call before making something whose size a template can choose.
    void reserve(size_t bytes) const;
    const RenderLimits& limits() const { return limits_; }

    TextPtr string(Text text);
    TextPtr string(std::string utf8) { return string(Text(std::move(utf8))); }
    List* list(std::vector<Value> items, ListType type = ListType::List);
    Iterator* iterator(std::vector<Value> items);
    Dict* dict() { return make<Dict>(); }
    /// Counts the growth of a container by n values.
    void grow(size_t n_values) { hold(n_values * sizeof(Value)); }
    /// Takes back what grow counted.
    void shrink(size_t n_values) { held_bytes_ -= n_values * sizeof(Value); }

    template <class T, class... Args>
    T* make(Args&&... args) {
        hold(sizeof(T));
        auto owner = std::make_unique<T>(std::forward<Args>(args)...);
        T* object = owner.get();
        objects_.push_back(std::move(owner));
        return object;
    }

    /// One level deeper into nested values, expressions or calls, until it goes out of scope.
    class Level {
      public:
        explicit Level(Runtime& runtime);
        ~Level() { --runtime_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Runtime& runtime_;
    };

  private:
    static constexpr size_t kBytesPerStep = 64;
    void hold(size_t bytes);

    RenderLimits limits_;
    size_t steps_ = 0;
    size_t held_bytes_ = 0;  // by containers
    size_t depth_ = 0;
    std::shared_ptr<size_t> string_bytes_ = std::make_shared<size_t>(0);  // of strings that are alive
    std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace llm::jinja
