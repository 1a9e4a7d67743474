#include "convert/leftovers.h"

#include <fmt/format.h>

#include "ggmlx/core/error.h"
#include "ggmlx/core/suggest.h"

namespace convert {

using ggmlx::ErrorKind;

Leftovers::Leftovers(std::span<const std::string> skip) {
    for (const std::string& pattern : skip) patterns_.emplace_back(ggmlx::Regex(pattern), 0);
}

void Leftovers::add(const std::string& name) {
    bool skipped = false;
    for (auto& [regex, count] : patterns_)
        if (regex.search(name)) {
            ++count;
            skipped = true;
        }
    if (!skipped) unknown_.push_back(name);
    all_.push_back(name);
}

void Leftovers::require_known() const {
    ggmlx::require(unknown_.empty(), ErrorKind::Unsupported,
                   "{} tensors of the checkpoint are unknown to this version; --skip REGEX leaves tensors out:\n  {}",
                   unknown_.size(), fmt::join(unknown_, "\n  "));
    for (const auto& [regex, count] : patterns_)
        ggmlx::require(count > 0, ErrorKind::InvalidArgument, "--skip \"{}\" matches no unneeded tensor{}",
                       regex.pattern(), ggmlx::did_you_mean(regex.pattern(), all_));
}

std::vector<std::string> Leftovers::notes() const {
    std::vector<std::string> notes;
    for (const auto& [regex, count] : patterns_)
        notes.push_back(fmt::format("skipped {} tensors by --skip {}", count, regex.pattern()));
    return notes;
}

}  // namespace convert
