#pragma once
// What a template computes with: Python's values as far as templates know them.
//
// Strings are shared and freed with their last user; containers and everything else that may refer to other values
// belong to the Heap of one rendering and are freed together at its end, so that neither cycles nor deep nesting can
// hurt.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "src/chat/text.h"

namespace llm::jinja {

class Runtime;
struct Object;

using TextPtr = std::shared_ptr<const Text>;

/// A value that is not there; using it for more than printing and testing is an error with this message.
struct Undefined {
    std::shared_ptr<const std::string> why;
};
struct None {};

class Value {
  public:
    Value() = default;  ///< undefined, without a reason
    Value(Undefined u) : data_(std::move(u)) {}
    Value(None n) : data_(n) {}
    Value(bool b) : data_(b) {}
    Value(int64_t i) : data_(i) {}
    Value(double d) : data_(d) {}
    Value(TextPtr text) : data_(std::move(text)) {}
    Value(Object* object) : data_(object) {}
    Value(const char*) = delete;

    bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
    bool is_none() const { return std::holds_alternative<None>(data_); }
    bool is_bool() const { return std::holds_alternative<bool>(data_); }
    bool is_int() const { return std::holds_alternative<int64_t>(data_); }
    bool is_float() const { return std::holds_alternative<double>(data_); }
    bool is_string() const { return std::holds_alternative<TextPtr>(data_); }
    bool is_object() const { return std::holds_alternative<Object*>(data_); }
    bool is_integral() const { return is_int() || is_bool(); }  ///< bool is an int in Python
    bool is_number() const { return is_integral() || is_float(); }

    const Undefined& undefined() const { return std::get<Undefined>(data_); }
    bool boolean() const { return std::get<bool>(data_); }
    double real() const { return std::get<double>(data_); }
    const Text& text() const { return *std::get<TextPtr>(data_); }
    const TextPtr& text_ptr() const { return std::get<TextPtr>(data_); }
    const std::string& str() const { return text().bytes; }
    Object* object() const { return std::get<Object*>(data_); }
    int64_t integer() const { return is_bool() ? int64_t{boolean()} : std::get<int64_t>(data_); }
    double number() const { return is_float() ? real() : static_cast<double>(integer()); }

    /// The object if it is a T, else null.
    template <class T>
    T* as() const;

  private:
    std::variant<Undefined, None, bool, int64_t, double, TextPtr, Object*> data_;
};

/// The arguments of a call.
struct Arguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
};

enum class ObjectKind : uint8_t { List, Dict, Namespace, Iterator, Function, Macro, Loop, Cycler, Joiner };

struct Object {
    explicit Object(ObjectKind k) : kind(k) {}
    virtual ~Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    /// An attribute that the object itself has; nothing for containers.
    virtual std::optional<Value> attribute(Runtime&, std::string_view) { return std::nullopt; }
    virtual Value call(Runtime& runtime, Arguments& arguments);       ///< an error unless overridden
    virtual std::optional<int64_t> length() { return std::nullopt; }  ///< len(), but for containers
    virtual std::string repr() { return ""; }                         ///< empty: as "<its type>"

    const ObjectKind kind;
};

/// What Python has several types for; they differ in how they print and compare.
enum class ListType : uint8_t { List, Tuple, Range, DictKeys, DictValues, DictItems };

struct List : Object {
    static constexpr ObjectKind kKind = ObjectKind::List;
    explicit List(ListType t, std::vector<Value> v = {}) : Object(kKind), type(t), items(std::move(v)) {}
    ListType type;
    std::vector<Value> items;
    int64_t start = 0, stop = 0, step = 1;  ///< of a range
};

/// Keeps the order in which keys came.
struct Dict : Object {
    static constexpr ObjectKind kKind = ObjectKind::Dict;
    Dict() : Object(kKind) {}
    std::vector<std::pair<Value, Value>> entries;

    const Value* find(Runtime& runtime, const Value& key) const;  ///< null if absent; throws for a key without a hash
    const Value* find(std::string_view key) const;
    void set(Runtime& runtime, const Value& key, Value value);  ///< throws for a key without a hash (a list, a dict)
    void erase(Runtime& runtime, const Value& key);
    void clear();

  private:
    std::vector<size_t> hashes_;                     // of the entries' keys
    std::unordered_multimap<size_t, size_t> index_;  // hash -> entry, once there are many
    template <class Same>
    size_t position(size_t hash, Same&& same) const;
    void rebuild_index();
};

struct Namespace : Object {
    static constexpr ObjectKind kKind = ObjectKind::Namespace;
    Namespace() : Object(kKind) {}
    Dict attributes;
};

/// A generator or another thing that can be gone through once.
struct Iterator : Object {
    static constexpr ObjectKind kKind = ObjectKind::Iterator;
    explicit Iterator(std::vector<Value> v) : Object(kKind), items(std::move(v)) {}
    std::vector<Value> items;
    size_t next = 0;
};

/// A function or method that is built in.
struct Function : Object {
    static constexpr ObjectKind kKind = ObjectKind::Function;
    using Body = std::function<Value(Runtime&, Arguments&)>;
    Function(std::string n, Body b) : Object(kKind), name(std::move(n)), body(std::move(b)) {}
    Value call(Runtime& runtime, Arguments& arguments) override { return body(runtime, arguments); }
    std::string name;
    Body body;
};

template <class T>
T* Value::as() const {
    if (!is_object() || object()->kind != T::kKind) return nullptr;
    return static_cast<T*>(object());
}

bool is_list_type(const Value& value, ListType type);  ///< "is exactly a list", "is exactly a tuple" …
bool is_callable(const Value& value);

/// Python's name of the type: "str", "dict", "NoneType" …
std::string_view type_name(const Value& value);
/// As jinja2 names a thing in messages: "dict object", "None".
std::string object_name(const Value& value);

}  // namespace llm::jinja
