// The team: everyone meets at every barrier, every item is worked on once, and more threads than processors still get
// through.

#include "ggmlx/backend/cpu/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace ggmlx {
namespace {

TEST(Team, RunsEveryIndexOnce) {
    for (int n : {1, 2, 3, 8}) {
        Team team(n);
        std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
        team.run([&](int index) { ++runs[static_cast<size_t>(index)]; });
        for (auto& count : runs) EXPECT_EQ(count, 1);
    }
}

TEST(Team, WhatOneThreadWroteIsSeenByAllAfterABarrier) {
    Team team(3);
    std::vector<int> written(3, 0);  // plain ints: ThreadSanitizer would see a missing ordering
    std::atomic<int> wrong{0};
    team.run([&](int index) {
        for (int round = 1; round <= 2000; ++round) {
            written[static_cast<size_t>(index)] = round;
            team.barrier();
            for (int value : written) wrong += value != round;
            team.barrier();
        }
    });
    EXPECT_EQ(wrong, 0);
}

TEST(Team, SharesEveryItemExactlyOnceInManyRounds) {
    for (int n_threads : {1, 2, 5}) {
        Team team(n_threads);
        std::vector<int> counts(101, 0);
        team.run([&](int) {
            for (int64_t grain : {1, 3, 7, 1000})
                for (int round = 0; round < 50; ++round)
                    team.share(static_cast<int64_t>(counts.size()), grain, [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
                    });
        });
        EXPECT_EQ(counts, std::vector<int>(101, 200));
    }
}

TEST(Team, SharingNothingIsABarrier) {
    Team team(2);
    int written = 0;
    std::atomic<int> seen{0};
    team.run([&](int index) {
        if (index == 0) written = 1;
        team.share(0, 1, [](int64_t, int64_t) { FAIL(); });
        seen += written;
    });
    EXPECT_EQ(seen, team.size());
}

TEST(Team, WakesSleepersWhenOneThreadIsLate) {
    Team team(3);
    std::atomic<int> passed{0};
    team.run([&](int index) {
        if (index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far beyond spinning
        team.barrier();
        ++passed;
    });
    EXPECT_EQ(passed, 3);
}

TEST(Team, ManyMoreThreadsThanProcessorsGetThrough) {
    Team team(24);
    std::atomic<int64_t> sum{0};
    team.run([&](int) {
        for (int round = 0; round < 50; ++round) team.share(100, 1, [&](int64_t begin, int64_t) { sum += begin; });
    });
    EXPECT_EQ(sum, 50 * 4950);
}

TEST(Team, RunsAgainAndAgain) {
    Team team(3);
    int total = 0;
    for (int round = 0; round < 300; ++round) {
        std::atomic<int> n{0};
        team.run([&](int) {
            ++n;
            team.barrier();
        });
        total += n;
    }
    EXPECT_EQ(total, 900);
}

}  // namespace
}  // namespace ggmlx
