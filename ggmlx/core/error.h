#pragma once
// The one exception type of the project. Code branches on the kind, people read the message, which says
// what was wrong, where (file, tensor, offset, flag) and what to do.

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ggmlx {

enum class ErrorKind {
    InvalidArgument,  ///< the caller or the user asked for something that makes no sense
    CorruptFile,      ///< bytes that contradict their format, or are cut short
    Unsupported,      ///< well-formed, but this version cannot do it
    OutOfMemory,      ///< memory of the host or of a device does not suffice
    Io,               ///< the operating system refused a read, write, map or rename
    Device,           ///< a device or a kernel reported a failure
};

class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

/// Throws Error{kind} with a message formatted as by fmt.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// fail() unless the condition holds. The arguments are formatted only when it does not.
template <class... Args>
void require(bool condition, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
    if (!condition) [[unlikely]]
        fail(kind, format, std::forward<Args>(args)...);
}

}  // namespace ggmlx
