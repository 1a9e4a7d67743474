#pragma once
// Reasoning: the thoughts that a model writes ahead of its answer, between two markers, told apart from the answer
// while the text streams.

#include <string>
#include <string_view>

namespace llm {

/// What stands around the thoughts, such as "<think>" and "</think>".
struct ReasoningMarkers {
    std::string open = "<think>", close = "</think>";
};

/// The markers of the family that a chat template belongs to, by what the template itself writes; those of most
/// families if it writes none.
ReasoningMarkers reasoning_markers(std::string_view template_source);

/// Splits streamed text. Thoughts are what stands between the markers at the very start of the text (white space may
/// come before); a marker that comes later is text like any other. Where the text is cut into pieces makes no
/// difference, and only what may still become a marker is held back.
class ReasoningStream {
  public:
    /// prompt: what the text goes on from. If it ends with the opening marker the text begins with thoughts.
    ReasoningStream(ReasoningMarkers markers, std::string_view prompt);

    struct Piece {
        std::string thoughts, answer;  ///< what became certain; thoughts come before the answer
    };
    Piece push(std::string_view text);
    /// What is still held back, when the text ends.
    Piece finish();

  private:
    enum class State { Start, Thoughts, Gap, Answer };
    ReasoningMarkers markers_;
    State state_ = State::Start;
    std::string held_;
    bool thoughts_begun_ = false;

    /// One transition; false if more text is needed. `last`: no more comes.
    bool step(Piece& piece, bool last);
    bool start(bool last);
    bool think(Piece& piece, bool last);
};

}  // namespace llm
