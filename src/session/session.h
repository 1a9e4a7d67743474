#pragma once
// Session: one conversation: its token ids and its place in an engine's cache.

#include <span>
#include <vector>

#include "src/session/engine.h"

namespace llm {

/// Owns a sequence of the engine's cache and gives it back at its end. Move-only; belongs to one thread at a time.
class Session {
  public:
    /// Empty. Throws out_of_memory when all sequences of the engine are taken.
    explicit Session(Engine& engine);
    ~Session();
    Session(Session&& other) noexcept;
    Session& operator=(Session&& other) noexcept;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    Engine& engine() const { return *engine_; }
    /// The tokens evaluated so far, in order.
    const std::vector<TokenId>& ids() const { return ids_; }
    int64_t length() const { return static_cast<int64_t>(ids_.size()); }
    /// How many more tokens the context takes.
    int64_t n_free() const { return engine_->n_ctx() - length(); }

    /// Forgets everything after the first n tokens.
    void truncate(int64_t n_tokens);
    /// Keeps what this session has in common with the start of `ids`, but leaves at least one of them to evaluate.
    /// Returns how many tokens were kept.
    int64_t keep_common_prefix(std::span<const TokenId> ids);

  private:
    friend class Engine;
    Engine* engine_;
    SequenceId sequence_ = -1;
    std::vector<TokenId> ids_;

    void close() noexcept;
};

}  // namespace llm
