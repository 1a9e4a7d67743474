#pragma once
// Perplexity: how well a model predicts a text, the same number for everyone who cuts the text the same way.

#include <functional>
#include <optional>
#include <span>

#include "src/session/session.h"

namespace llm {

struct PerplexityOptions {
    int64_t window = 512;        ///< input tokens of a window
    std::optional<TokenId> bos;  ///< put in front of each window, as the first of its input tokens
};

struct Perplexity {
    double nll = 0;             ///< mean negative log-likelihood per scored token, in nats
    double perplexity = 0;      ///< exp(nll)
    double standard_error = 0;  ///< of nll
    int64_t n_tokens = 0;       ///< scored
    int64_t n_windows = 0;
};

/// Cuts the ids into consecutive windows and scores every token that a window predicts, each window from an empty
/// context. Without bos, window i reads ids [N·i, N·i + N) and predicts ids [N·i + 1, N·i + N]: the last one is the
/// first token of the next window. With bos it reads BOS and ids [N·i, N·i + N - 1) and predicts ids [N·i, N·i + N).
/// Either way N tokens are scored per window; what is left at the end of the text is left out. Log-probabilities are
/// computed from the logits in double. on_window(windows done, windows in all) is called after each.
/// Throws invalid_argument if the ids do not fill one window, with numbers.
Perplexity perplexity(Engine& engine, std::span<const TokenId> ids, const PerplexityOptions& options,
                      const std::function<void(int64_t, int64_t)>& on_window = {});

}  // namespace llm
