#include "src/chat/reasoning.h"

#include <algorithm>
#include <utility>

#include "ggmlx/core/begun.h"

namespace llm {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool begins_marker(std::string_view text, std::string_view marker) { return marker.substr(0, text.size()) == text; }

size_t blank_bytes_at_end(std::string_view text) { return text.size() - (text.find_last_not_of(kBlank) + 1); }

}  // namespace

ReasoningMarkers reasoning_markers(std::string_view template_source) {
    for (const auto& [open, close] : {std::pair("<think>", "</think>"), std::pair("[THINK]", "[/THINK]"),
                                      std::pair("<seed:think>", "</seed:think>")})
        if (template_source.find(close) != template_source.npos) return {open, close};
    return {};
}

ReasoningStream::ReasoningStream(ReasoningMarkers markers, std::string_view prompt) : markers_(std::move(markers)) {
    prompt.remove_suffix(blank_bytes_at_end(prompt));
    if (prompt.ends_with(markers_.open)) state_ = State::Thoughts;
}

ReasoningStream::Piece ReasoningStream::push(std::string_view text) {
    held_ += text;
    Piece piece;
    while (step(piece, false)) {
    }
    return piece;
}

ReasoningStream::Piece ReasoningStream::finish() {
    Piece piece;
    while (step(piece, true)) {
    }
    return piece;
}

bool ReasoningStream::step(Piece& piece, bool last) {
    switch (state_) {
        case State::Start:
            return start(last);
        case State::Thoughts:
            return think(piece, last);
        case State::Gap:  // white space between thoughts and answer belongs to neither
            held_.erase(0, std::min(held_.find_first_not_of(kBlank), held_.size()));
            if (held_.empty()) return false;
            state_ = State::Answer;
            return true;
        case State::Answer:
            piece.answer += std::exchange(held_, {});
            return false;
    }
    return false;
}

bool ReasoningStream::start(bool last) {
    const size_t begin = held_.find_first_not_of(kBlank);
    const std::string_view text = begin == held_.npos ? std::string_view() : std::string_view(held_).substr(begin);
    if (text.starts_with(markers_.open)) {
        held_.erase(0, begin + markers_.open.size());
        state_ = State::Thoughts;
        return true;
    }
    if (!last && begins_marker(text, markers_.open)) return false;
    state_ = State::Answer;
    return true;
}

bool ReasoningStream::think(Piece& piece, bool last) {
    if (!thoughts_begun_) held_.erase(0, std::min(held_.find_first_not_of(kBlank), held_.size()));
    const size_t close = held_.find(markers_.close);
    const bool closed = close != held_.npos;
    size_t n = closed ? close : held_.size();
    if (!closed && !last) {  // neither the marker's beginning nor the white space ahead of it is certain
        n -= ggmlx::begun_bytes(held_, markers_.close);
    }
    if (closed || !last) n -= blank_bytes_at_end(std::string_view(held_).substr(0, n));
    piece.thoughts += held_.substr(0, n);
    thoughts_begun_ |= n > 0;
    held_.erase(0, closed ? close + markers_.close.size() : n);
    if (closed) state_ = State::Gap;
    return closed;
}

}  // namespace llm
