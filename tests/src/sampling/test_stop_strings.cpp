#include <gtest/gtest.h>

#include <random>

#include "ggmlx/core/error.h"
#include "src/sampling/sampler.h"

namespace llm {
namespace {

struct Outcome {
    std::string text;
    bool stopped = false;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
    StopStrings finder(stops);
    Outcome all;
    for (const std::string& piece : pieces) {
        const auto result = finder.push(piece);
        all.text += result.text;
        all.stopped = result.stopped;
        if (all.stopped) break;
    }
    all.text += finder.finish();
    return all;
}

TEST(StopStrings, StopOverSeveralPiecesLeaksNothing) {
    StopStrings stops({"own fox"});
    EXPECT_EQ(stops.push("The quick br").text, "The quick br");
    EXPECT_EQ(stops.push("own").text, "");
    const auto last = stops.push(" fox");
    EXPECT_EQ(last.text, "");
    EXPECT_TRUE(last.stopped);
    const auto after = stops.push(" jumps");
    EXPECT_EQ(after.text, "");
    EXPECT_TRUE(after.stopped);
    EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, HeldTextComesOutAtTheEnd) {
    const Outcome o = run({"own fox"}, {"The quick br", "own"});
    EXPECT_EQ(o.text, "The quick brown");
    EXPECT_FALSE(o.stopped);
}

TEST(StopStrings, OnlyWhatMayBecomeAStopIsHeld) {
    StopStrings stops({"###", "\n\nUser:"});
    EXPECT_EQ(stops.push("a#").text, "a");
    EXPECT_EQ(stops.push("b\n").text, "#b");
    EXPECT_EQ(stops.push("\nU").text, "");
    EXPECT_EQ(stops.push("ser").text, "");
    EXPECT_EQ(stops.push("s:").text, "\n\nUsers:");
}

TEST(StopStrings, TheFirstCompleteOneWins) {
    EXPECT_EQ(run({"ab", "abc"}, {"xabcd"}).text, "x");
    EXPECT_EQ(run({"abc", "ab"}, {"xa", "bc"}).text, "x");
    EXPECT_EQ(run({"bc", "abcd"}, {"xabcd"}).text, "xa");
    EXPECT_EQ(run({"cd", "bcd"}, {"abcd"}).text, "a");
    EXPECT_EQ(run({"z", "y"}, {"a y z"}).text, "a ");
}

TEST(StopStrings, HowTheTextIsCutMakesNoDifference) {
    std::mt19937 random(9);
    for (int round = 0; round < 3000; ++round) {
        const auto letters = [&](size_t n) {
            std::string s;
            for (size_t i = 0; i < n; ++i) s += static_cast<char>('a' + random() % 3);
            return s;
        };
        std::vector<std::string> stops;
        for (size_t i = 0, n = 1 + random() % 3; i < n; ++i) stops.push_back(letters(1 + random() % 5));
        const std::string text = letters(random() % 30);
        std::vector<std::string> pieces;
        for (size_t at = 0, n = 0; at < text.size(); at += n) pieces.push_back(text.substr(at, n = 1 + random() % 4));
        const Outcome whole = run(stops, {text}), cut = run(stops, pieces);
        ASSERT_EQ(whole.text, cut.text);
        ASSERT_EQ(whole.stopped, cut.stopped);
        if (!whole.stopped) {
            ASSERT_EQ(whole.text, text);
        }
        for (const std::string& stop : stops) ASSERT_EQ(whole.text.find(stop), std::string::npos);
    }
}

TEST(StopStrings, NoStopsLetEverythingThrough) {
    StopStrings stops({});
    EXPECT_EQ(stops.push("abc").text, "abc");
    EXPECT_THROW(StopStrings({"a", ""}), ggmlx::Error);
}

}  // namespace
}  // namespace llm
