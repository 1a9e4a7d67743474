#include "src/chat/date.h"

#include <charconv>
#include <chrono>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

bool parse_part(std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

}  // namespace

std::tm parse_date(std::string_view text) {
    int year = 0, month = 0, day = 0;
    const bool shaped = text.size() == 10 && text[4] == '-' && text[7] == '-' && parse_part(text.substr(0, 4), year) &&
                        parse_part(text.substr(5, 2), month) && parse_part(text.substr(8, 2), day);
    const auto date = std::chrono::year(year) / month / day;
    ggmlx::require(shaped && date.ok(), ggmlx::ErrorKind::InvalidArgument, "\"{}\" is no date; write it as YYYY-MM-DD",
                   text);
    const std::chrono::sys_days days(date);
    const std::chrono::sys_days new_year(std::chrono::year(year) / 1 / 1);
    std::tm result{};
    result.tm_year = year - 1900;
    result.tm_mon = month - 1;
    result.tm_mday = day;
    result.tm_wday = static_cast<int>(std::chrono::weekday(days).c_encoding());
    result.tm_yday = static_cast<int>((days - new_year).count());
    return result;
}

}  // namespace llm
