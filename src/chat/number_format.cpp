#include "src/chat/number_format.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "src/chat/python_text.h"
#include "src/chat/strings.h"

namespace llm::jinja {
namespace {

constexpr int64_t kMaxFormatSize = 4096;

void to_upper_ascii(std::string& text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
}

std::string grouped(std::string digits, char separator, size_t every) {
    for (size_t at = digits.size(); at > every;) {
        at -= every;
        digits.insert(at, 1, separator);
    }
    return digits;
}

std::string sign_of(bool negative, char sign) {
    if (negative) return "-";
    return sign == '-' ? "" : std::string(1, sign);
}

std::string digits_of(uint64_t value, int base) {
    char buffer[65];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, base);
    return {buffer, end.ptr};
}

/// As C's printf prints it.
std::string printed(double value, int64_t precision, char type) {
    const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(type)));
    const auto format = kind == 'e'   ? std::chars_format::scientific
                        : kind == 'f' ? std::chars_format::fixed
                                      : std::chars_format::general;
    std::string text(static_cast<size_t>(precision) + 400, '\0');
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, static_cast<int>(precision));
    text.resize(static_cast<size_t>(end.ptr - text.data()));
    if (kind != type) to_upper_ascii(text);
    return text;
}

}  // namespace

void check_format_size(int64_t size) {
    if (size > kMaxFormatSize) refuse("a format's width or precision is over {}", kMaxFormatSize);
}

std::string format_int(int64_t value, const FormatSpec& spec) {
    const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    int base = 10;
    std::string prefix;
    switch (spec.type) {
        case '\0':
        case 'd':
        case 'i':
        case 'u':
        case 'n':
            break;
        case 'x':
        case 'X':
            base = 16;
            prefix = spec.type == 'x' ? "0x" : "0X";
            break;
        case 'o':
            base = 8;
            prefix = "0o";
            break;
        case 'b':
            base = 2;
            prefix = "0b";
            break;
        default:
            refuse("Unknown format code '{}' for object of type 'int'", spec.type);
    }
    std::string digits = digits_of(magnitude, base);
    if (spec.type == 'X') to_upper_ascii(digits);
    if (spec.grouping) digits = grouped(std::move(digits), spec.grouping, base == 10 ? 3 : 4);
    return sign_of(value < 0, spec.sign) + (spec.alternate ? prefix : "") + digits;
}

std::string format_float(double value, const FormatSpec& spec) {
    const bool percent = spec.type == '%';
    const char type = percent ? 'f' : spec.type;
    std::string text;
    const double magnitude = std::fabs(percent ? value * 100 : value);
    if (std::isnan(value) || std::isinf(value)) {
        text = std::isnan(value) ? "nan" : "inf";
        if (type == 'F' || type == 'E' || type == 'G') to_upper_ascii(text);
    } else if (type == '\0' && !spec.precision) {
        text = repr_of_float(magnitude);
    } else if (type == '\0') {
        text = printed(magnitude, std::max<int64_t>(*spec.precision, 1), 'g');
        if (text.find_first_of(".e") == text.npos) text += ".0";
    } else if (type == 'e' || type == 'E' || type == 'f' || type == 'F' || type == 'g' || type == 'G') {
        text = printed(magnitude, spec.precision.value_or(6), type);
    } else {
        refuse("Unknown format code '{}' for object of type 'float'", spec.type);
    }
    if (spec.grouping) {
        const size_t whole = std::min(text.find_first_of(".e"), text.size());
        text = grouped(text.substr(0, whole), spec.grouping, 3) + text.substr(whole);
    }
    return sign_of(std::signbit(value) && !std::isnan(value), spec.sign) + text + (percent ? "%" : "");
}

Text pad_to_width(Runtime& runtime, const Text& text, const FormatSpec& spec, char default_align) {
    const auto width = static_cast<size_t>(spec.width);
    if (text.n_chars >= width) return text;
    const size_t room = width - text.n_chars;
    const Text fill(spec.fill);
    switch (spec.align ? spec.align : default_align) {
        case '<':
            return pad(runtime, text, 0, room, fill);
        case '^':
            return pad(runtime, text, room / 2, room - room / 2, fill);
        case '=': {
            size_t sign = text.bytes.find_first_of("+- ") == 0 ? 1 : 0;
            if (text.bytes.substr(sign, 1) == "0" && text.bytes.size() > sign + 1 &&
                std::isalpha(static_cast<unsigned char>(text.bytes[sign + 1])))
                sign += 2;  // 0x
            TextBuilder head, digits;
            head.append(text, 0, sign);
            digits.append(text, sign, text.bytes.size());
            head.append(pad(runtime, digits.take(), room, 0, fill));
            return head.take();
        }
        default:
            return pad(runtime, text, room, 0, fill);
    }
}

}  // namespace llm::jinja
