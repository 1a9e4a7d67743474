// "%s and %05.1f" % values, as Python's str does it.

#include <cmath>

#include "src/chat/access.h"
#include "src/chat/compare.h"
#include "src/chat/number_format.h"
#include "src/chat/operators.h"
#include "src/chat/python_text.h"
#include "src/tokenizer/utf8.h"

namespace llm::jinja {
namespace {

class PercentFormatter {
  public:
    PercentFormatter(Runtime& runtime, const Text& format, const Value& values)
        : runtime_(runtime), format_(format), values_(values), tuple_(values.as<List>()) {
        if (tuple_ && tuple_->type != ListType::Tuple) tuple_ = nullptr;
    }

    Text run();

  private:
    Runtime& runtime_;
    const Text& format_;
    const Value& values_;
    const List* tuple_;  // of the values; null: there is one
    size_t used_ = 0;
    bool by_name_ = false;
    size_t at_ = 0;
    TextBuilder out_;

    char current() const {
        if (at_ >= format_.bytes.size()) refuse("incomplete format");
        return format_.bytes[at_];
    }
    Value next_value();
    Value named_value();
    int64_t number();
    void conversion();
    Text converted(const Value& value, FormatSpec& spec);
    Text number_text(const Value& value, const FormatSpec& spec);
};

Value PercentFormatter::next_value() {
    const size_t available = tuple_ ? tuple_->items.size() : 1;
    if (used_ >= available) refuse("not enough arguments for format string");
    ++used_;
    return tuple_ ? tuple_->items[used_ - 1] : values_;
}

/// "(name)" behind the "%".
Value PercentFormatter::named_value() {
    const Dict* dict = values_.as<Dict>();
    if (!dict) refuse("format requires a mapping");
    const size_t begin = ++at_;
    for (int open = 1; open > 0; ++at_) {
        if (at_ >= format_.bytes.size()) refuse("incomplete format key");
        if (format_.bytes[at_] == '(') ++open;
        if (format_.bytes[at_] == ')') --open;
    }
    const std::string name = format_.bytes.substr(begin, at_ - 1 - begin);
    const Value* value = dict->find(name);
    if (!value) refuse("the format's key {} is not among the values", repr_of_text(name));
    by_name_ = true;
    return *value;
}

int64_t PercentFormatter::number() {
    if (current() == '*') {
        ++at_;
        const Value value = next_value();
        if (!value.is_integral()) refuse("* wants int");
        return value.integer();
    }
    int64_t value = 0;
    for (; current() >= '0' && current() <= '9'; ++at_) {
        value = value * 10 + (current() - '0');
        check_format_size(value);
    }
    return value;
}

Text PercentFormatter::number_text(const Value& value, const FormatSpec& spec) {
    require_defined(value);
    const bool real = std::string_view("eEfFgG").find(spec.type) != std::string_view::npos;
    if (!value.is_number() || (spec.type != 'd' && !real && !value.is_integral()))
        refuse("%{} format: a{} number is required, not {}", spec.type, real ? " real" : "n integer", type_name(value));
    if (real) return Text(format_float(value.number(), spec));
    if (value.is_integral()) return Text(format_int(value.integer(), spec));
    if (!(std::fabs(value.real()) < 0x1p63)) refuse("cannot convert {} to a whole number", repr_of_float(value.real()));
    return Text(format_int(static_cast<int64_t>(value.real()), spec));
}

Text PercentFormatter::converted(const Value& value, FormatSpec& spec) {
    switch (spec.type) {
        case 's':
        case 'r':
        case 'a': {
            Text text;
            if (spec.type == 's') {
                text = to_text(runtime_, value);
            } else {
                TextBuilder repr;
                append_repr(runtime_, value, repr);
                text = repr.take();
            }
            const auto limit = spec.precision ? static_cast<size_t>(*spec.precision) : text.n_chars;
            return limit < text.n_chars ? characters(text, 0, limit) : text;
        }
        case 'c': {
            if (value.is_string() && value.text().n_chars == 1) return value.text();
            if (!value.is_integral() || value.integer() < 0 || value.integer() > 0x10FFFF ||
                (value.integer() >= 0xD800 && value.integer() < 0xE000))
                refuse("%c requires int or char");
            std::string character;
            append_utf8(character, static_cast<char32_t>(value.integer()));
            return Text(character);
        }
        case 'i':
        case 'u':
            spec.type = 'd';
            [[fallthrough]];
        case 'd':
        case 'o':
        case 'x':
        case 'X':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            return number_text(value, spec);
        default:
            refuse("unsupported format character '{}'", spec.type);
    }
}

/// Behind the "%".
void PercentFormatter::conversion() {
    FormatSpec spec;
    Value value;
    const bool named = current() == '(';
    if (named) value = named_value();
    bool zero = false, left = false;
    for (; std::string_view("#0- +").find(current()) != std::string_view::npos; ++at_) {
        const char flag = current();
        spec.alternate = spec.alternate || flag == '#';
        zero = zero || flag == '0';
        left = left || flag == '-';
        if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
    }
    spec.width = number();
    if (spec.width < 0) {
        left = true;
        spec.width = -std::max(spec.width, -INT64_MAX);
    }
    check_format_size(spec.width);
    if (current() == '.') {
        ++at_;
        spec.precision = std::max<int64_t>(number(), 0);
        check_format_size(*spec.precision);
    }
    if (current() == 'h' || current() == 'l' || current() == 'L') ++at_;
    spec.type = current();
    ++at_;
    if (spec.type == '%') return out_.append("%");
    if (!named) value = next_value();
    const bool is_number = std::string_view("diuoxXeEfFgG").find(spec.type) != std::string_view::npos;
    const Text text = converted(value, spec);
    if (left) spec.align = '<';
    if (zero && !left && is_number) {
        spec.fill.assign(1, '0');
        spec.align = '=';
    }
    append_joined(out_, pad_to_width(runtime_, text, spec, '>'), format_.markup);
}

Text PercentFormatter::run() {
    while (at_ < format_.bytes.size()) {
        const size_t percent = std::min(format_.bytes.find('%', at_), format_.bytes.size());
        runtime_.spend(1);
        runtime_.reserve(out_.size() + percent - at_);
        out_.append(format_, at_, percent);
        at_ = percent + 1;
        if (percent < format_.bytes.size()) conversion();
    }
    const bool like_mapping = values_.as<Dict>() || values_.as<List>() || values_.is_undefined();  // for Python
    const bool all_used = tuple_ ? used_ == tuple_->items.size() : used_ == 1 || like_mapping;
    if (!by_name_ && !all_used) refuse("not all arguments converted during string formatting");
    Text result = out_.take();
    result.markup = format_.markup;
    return result;
}

}  // namespace

Text format_percent(Runtime& runtime, const Text& format, const Value& values) {
    return PercentFormatter(runtime, format, values).run();
}

}  // namespace llm::jinja
