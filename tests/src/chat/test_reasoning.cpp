// Thoughts and answer, told apart in streamed text.

#include "src/chat/reasoning.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace llm {
namespace {

struct Split {
    std::string thoughts, answer;
    bool operator==(const Split&) const = default;
};

Split split_pieces(const std::vector<std::string>& pieces, std::string_view prompt = "") {
    ReasoningStream stream({}, prompt);
    Split all;
    const auto add = [&](const ReasoningStream::Piece& piece) {
        EXPECT_TRUE(piece.thoughts.empty() || all.answer.empty()) << "thoughts after the answer";
        all.thoughts += piece.thoughts;
        all.answer += piece.answer;
    };
    for (const std::string& piece : pieces) add(stream.push(piece));
    add(stream.finish());
    return all;
}

TEST(Reasoning, TellsThoughtsFromTheAnswer) {
    EXPECT_EQ(split_pieces({"<think>\nso\n\nthen\n</think>\n\nParis."}), (Split{"so\n\nthen", "Paris."}));
    EXPECT_EQ(split_pieces({"\n<think>so</think>Paris."}), (Split{"so", "Paris."}));
    EXPECT_EQ(split_pieces({"so</think>Paris."}, "<assistant><think>\n"), (Split{"so", "Paris."}));
    EXPECT_EQ(split_pieces({"</think>\n\nParis."}, "<think>"), (Split{"", "Paris."}));
    EXPECT_EQ(split_pieces({"<think>\n\n</think>\n\nParis."}), (Split{"", "Paris."}));
}

TEST(Reasoning, LosesNothingWithoutMarkers) {
    EXPECT_EQ(split_pieces({"  Paris <think> is </think> fine.\n"}),
              (Split{"", "  Paris <think> is </think> fine.\n"}));
    EXPECT_EQ(split_pieces({"<thin"}), (Split{"", "<thin"}));
    EXPECT_EQ(split_pieces({"<think>a < b and </thi nothing "}), (Split{"a < b and </thi nothing ", ""}));
    EXPECT_EQ(split_pieces({"<think>never closed</thin"}), (Split{"never closed</thin", ""}));
    EXPECT_EQ(split_pieces({" \n"}), (Split{"", " \n"}));
    EXPECT_EQ(split_pieces({}), (Split{"", ""}));
}

TEST(Reasoning, HoldsBackOnlyWhatMayBecomeAMarker) {
    ReasoningStream stream({}, "<think>\n");
    EXPECT_EQ(stream.push("def</th").thoughts, "def");
    const auto piece = stream.push("ink> answer");
    EXPECT_EQ(piece.thoughts, "");
    EXPECT_EQ(piece.answer, "answer");
    EXPECT_EQ(stream.push(" </think>").answer, " </think>");
}

TEST(Reasoning, CutsMakeNoDifference) {
    const std::string text = " <think>\nwhy </thin </think\n> so\n </think>\n\n The <think>answer</think> is 42.\n";
    const Split whole = split_pieces({text});
    EXPECT_EQ(whole.thoughts, "why </thin </think\n> so");
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> pieces;
        for (size_t at = 0; at < text.size();) {
            pieces.push_back(text.substr(at, 1 + random() % 7));
            at += pieces.back().size();
        }
        EXPECT_EQ(split_pieces(pieces), whole) << round;
    }
}

TEST(Reasoning, MarkersComeFromTheTemplate) {
    EXPECT_EQ(reasoning_markers("{{ x.split('</think>')[0] }}").open, "<think>");
    EXPECT_EQ(reasoning_markers("{{ '[THINK]' + t + '[/THINK]' }}").close, "[/THINK]");
    EXPECT_EQ(reasoning_markers("").close, "</think>");
}

}  // namespace
}  // namespace llm
