#include <algorithm>
#include <utility>

#include "ggmlx/core/begun.h"
#include "ggmlx/core/error.h"
#include "src/sampling/sampler.h"

namespace llm {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
    for (const std::string& stop : stops_)
        ggmlx::require(!stop.empty(), ggmlx::ErrorKind::InvalidArgument, "a stop string is empty; leave it out");
}

StopStrings::Result StopStrings::push(std::string_view piece) {
    if (stopped_) return {"", true};
    held_ += piece;
    size_t begin = held_.npos, end = held_.npos;
    for (const std::string& stop : stops_) {
        const size_t at = held_.find(stop);
        if (at == held_.npos) continue;
        const size_t stop_end = at + stop.size();
        if (stop_end < end || (stop_end == end && at < begin)) begin = at, end = stop_end;
    }
    stopped_ = begin != held_.npos;
    size_t n_safe = begin;
    if (!stopped_) {
        size_t n_begun = 0;
        for (const std::string& stop : stops_) n_begun = std::max(n_begun, ggmlx::begun_bytes(held_, stop));
        n_safe = held_.size() - n_begun;
    }
    Result result{held_.substr(0, n_safe), stopped_};
    held_.erase(0, stopped_ ? held_.size() : n_safe);
    return result;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace llm
