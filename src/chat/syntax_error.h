#pragma once
// Errors found in a template's source.

#include <fmt/core.h>

#include <string>
#include <utility>

#include "ggmlx/core/error.h"

namespace llm::jinja {

/// "NAME:LINE: ", how every error of a template begins.
inline std::string place(const std::string& name, int line) { return fmt::format("{}:{}: ", name, line); }

/// The source is no template.
template <class... Args>
[[noreturn]] void syntax_error(const std::string& name, int line, fmt::format_string<Args...> format, Args&&... args) {
    throw ggmlx::Error(ggmlx::ErrorKind::CorruptFile,
                       place(name, line) + fmt::format(format, std::forward<Args>(args)...));
}

/// It may be one, but not for us.
template <class... Args>
[[noreturn]] void unsupported(const std::string& name, int line, fmt::format_string<Args...> format, Args&&... args) {
    throw ggmlx::Error(ggmlx::ErrorKind::Unsupported,
                       place(name, line) + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace llm::jinja
