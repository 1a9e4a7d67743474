// What /set changes.

#include "tools/chat/settings.h"

#include <gtest/gtest.h>

#include "ggmlx/core/error.h"
#include "tools/args.h"

namespace cli {
namespace {

TEST(Settings, ChangeByName) {
    ChatSettings s;
    change_setting(s, "temp", "0.25");
    change_setting(s, "top-k", "7");
    change_setting(s, "seed", "42");
    change_setting(s, "predict", "100");
    change_setting(s, "timings", "on");
    EXPECT_EQ(s.generate.sampling.temperature, 0.25f);
    EXPECT_EQ(s.generate.sampling.top_k, 7);
    EXPECT_EQ(s.generate.sampling.seed, 42);
    EXPECT_EQ(s.generate.max_tokens, 100);
    EXPECT_TRUE(s.show_timings);
    EXPECT_NE(list_settings(s).find("top-k              7"), std::string::npos) << list_settings(s);
}

TEST(Settings, StayAsTheyAreWhenTheValueIsWrong) {
    ChatSettings s;
    const std::string before = list_settings(s);
    EXPECT_THROW(change_setting(s, "temp", "warm"), UsageError);
    EXPECT_THROW(change_setting(s, "temp", ""), UsageError);
    EXPECT_THROW(change_setting(s, "top-k", "1.5"), UsageError);
    EXPECT_THROW(change_setting(s, "timings", "maybe"), UsageError);
    EXPECT_THROW(change_setting(s, "predict", "-2"), UsageError);
    EXPECT_THROW(change_setting(s, "top-p", "nan"), ggmlx::Error);
    EXPECT_EQ(list_settings(s), before);
    try {
        change_setting(s, "top-z", "1");
        ADD_FAILURE() << "accepted";
    } catch (const UsageError& e) {
        EXPECT_NE(std::string(e.what()).find("top-k"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace cli
