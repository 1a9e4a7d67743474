#include "src/session/session.h"

#include <algorithm>
#include <utility>

namespace llm {

Session::Session(Engine& engine) : engine_(&engine), sequence_(engine.cache().open()) {}

Session::~Session() { close(); }

Session::Session(Session&& other) noexcept
    : engine_(other.engine_), sequence_(std::exchange(other.sequence_, -1)), ids_(std::move(other.ids_)) {}

Session& Session::operator=(Session&& other) noexcept {
    if (this == &other) return *this;
    close();
    engine_ = other.engine_;
    sequence_ = std::exchange(other.sequence_, -1);
    ids_ = std::move(other.ids_);
    return *this;
}

void Session::close() noexcept {
    if (sequence_ >= 0) engine_->cache().close(sequence_);
}

void Session::truncate(int64_t n_tokens) {
    engine_->cache().truncate(sequence_, n_tokens);
    ids_.resize(static_cast<size_t>(n_tokens));
}

int64_t Session::keep_common_prefix(std::span<const TokenId> ids) {
    const size_t most = std::min(ids_.size(), ids.empty() ? 0 : ids.size() - 1);
    size_t n = 0;
    while (n < most && ids_[n] == ids[n]) ++n;
    truncate(static_cast<int64_t>(n));
    return static_cast<int64_t>(n);
}

}  // namespace llm
