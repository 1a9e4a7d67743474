// The team: everyone meets where they should, every item is worked on once, and more threads than processors still get
// through.

#include "ggmlx/backend/cpu/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace ggmlx {
namespace {

TEST(Team, RunsEveryIndexOnce) {
    for (int n : {1, 2, 3, 8}) {
        Team team(n);
        std::vector<std::atomic<int>> runs(static_cast<size_t>(n));
        team.run([&](Member& member) {
            EXPECT_EQ(member.n_threads(), n);
            ++runs[static_cast<size_t>(member.index())];
        });
        for (auto& count : runs) EXPECT_EQ(count, 1);
    }
}

TEST(Team, WhatOneThreadWroteIsSeenByAllAfterABarrier) {
    Team team(3);
    std::vector<int> written(3, 0);  // plain ints: ThreadSanitizer would see a missing ordering
    std::atomic<int> wrong{0};
    team.run([&](Member& member) {
        member.fork();
        for (int round = 1; round <= 2000; ++round) {
            written[static_cast<size_t>(member.index())] = round;
            member.barrier();
            for (int value : written) wrong += value != round;
            member.barrier();
        }
        member.join();
    });
    EXPECT_EQ(wrong, 0);
}

TEST(Team, ForkShowsWhatThreadZeroDidAndJoinShowsItWhatAllDid) {
    Team team(4);
    int given = 0, wrong = 0;
    std::vector<int> taken(4, 0);
    team.run([&](Member& member) {
        for (int round = 1; round <= 1000; ++round) {
            if (member.index() == 0) given = round;
            member.fork();
            taken[static_cast<size_t>(member.index())] = given;
            member.join();
            if (member.index() > 0) continue;
            for (int i = 0; i < member.size(); ++i) wrong += taken[static_cast<size_t>(i)] != round;
        }
    });
    EXPECT_EQ(wrong, 0);
}

TEST(Team, SharesEveryItemExactlyOnceInManyRounds) {
    for (int n_threads : {1, 2, 5}) {
        Team team(n_threads);
        std::vector<int> counts(101, 0);
        team.run([&](Member& member) {
            for (int64_t grain : {1, 3, 7, 1000})
                for (int round = 0; round < 50; ++round) {
                    member.fork();
                    member.share(static_cast<int64_t>(counts.size()), grain, [&](int64_t begin, int64_t end) {
                        EXPECT_TRUE(end - begin == grain || end == static_cast<int64_t>(counts.size()));
                        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
                    });
                    member.join();
                }
        });
        EXPECT_EQ(counts, std::vector<int>(101, 200));
    }
}

TEST(Team, ManySharesInOnePartDoNotMixUpTheirItems) {
    constexpr size_t kShares = 50;  // more than the team has counters for
    Team team(3);
    std::vector<std::vector<int>> counts(kShares, std::vector<int>(17, 0));
    team.run([&](Member& member) {
        member.fork();
        for (auto& share : counts) member.share(17, 1, [&](int64_t i, int64_t) { ++share[static_cast<size_t>(i)]; });
        member.join();
    });
    for (const auto& share : counts) EXPECT_EQ(share, std::vector<int>(17, 1));
}

TEST(Team, GroupsShareWorkOfTheirOwn) {
    Team team(5, {0, 1, 0, 1, 1});
    std::vector<std::vector<int>> counts = {std::vector<int>(40, 0), std::vector<int>(23, 0)};
    std::vector<int> everybodys(31, 0);
    std::atomic<int> wrong{0};
    team.run([&](Member& member) {
        if (member.n_groups() != 2) return;  // the system gave fewer threads
        const int group = member.index() == 0 || member.index() == 2 ? 0 : 1;
        wrong += member.group() != group || member.size(Among::Group) != 2 + group || member.size(Among::Team) != 5;
        auto& own = counts[static_cast<size_t>(group)];
        for (int round = 0; round < 20; ++round) {
            member.fork();
            member.share(Among::Group, static_cast<int64_t>(own.size()), 1 + group, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) ++own[static_cast<size_t>(i)];
            });
            member.share(31, 3, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) ++everybodys[static_cast<size_t>(i)];
            });
            member.join();
        }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(counts[0], std::vector<int>(40, 20));
    EXPECT_EQ(counts[1], std::vector<int>(23, 20));
    EXPECT_EQ(everybodys, std::vector<int>(31, 20));
}

TEST(Team, AGroupWithoutThreadsMakesOneGroupOfAll) {
    Team team(2, {2, 0});
    std::atomic<int> count{0};
    team.run([&](Member& member) {
        EXPECT_EQ(member.n_groups(), 1);
        EXPECT_EQ(member.size(Among::Group), member.size());
        member.fork();
        member.share(Among::Group, 10, 1, [&](int64_t, int64_t) { ++count; });
        member.join();
    });
    EXPECT_EQ(count, 10);
}

TEST(Team, WhatASlowThreadHasNotBegunIsDoneByOthers) {
    Team team(2);
    std::atomic<int> n_done{0};
    std::atomic<bool> stuck{true};
    team.run([&](Member& member) {
        member.fork();
        member.share(100, 1, [&](int64_t, int64_t) {
            if (member.index() == 0 && member.size() > 1) {
                while (n_done < 99) std::this_thread::yield();  // all others must come through without this thread
                stuck = false;
            }
            ++n_done;
        });
        member.join();
    });
    EXPECT_EQ(n_done, 100);
    EXPECT_FALSE(stuck);
}

TEST(Team, SharingNothingCallsNobody) {
    Team team(2);
    team.run([&](Member& member) {
        member.fork();
        member.share(0, 1, [](int64_t, int64_t) { FAIL(); });
        member.join();
    });
}

TEST(Team, AMemberWithoutATeamDoesEverythingInOrder) {
    Member alone;
    std::vector<int64_t> begins;
    alone.fork();
    alone.share(10, 4, [&](int64_t begin, int64_t) { begins.push_back(begin); });
    alone.barrier();
    alone.join();
    EXPECT_EQ(begins, (std::vector<int64_t>{0, 4, 8}));
}

TEST(Team, WakesSleepersWhenOneThreadIsLate) {
    for (int late : {0, 2}) {
        Team team(3);
        std::atomic<int> passed{0};
        team.run([&](Member& member) {
            member.fork();
            if (member.index() == late)
                std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far beyond spinning
            member.barrier();
            ++passed;
            member.join();
        });
        EXPECT_EQ(passed, 3);
    }
}

TEST(Team, ManyMoreThreadsThanProcessorsGetThrough) {
    Team team(24);
    std::atomic<int64_t> sum{0};
    team.run([&](Member& member) {
        for (int round = 0; round < 50; ++round) {
            member.fork();
            member.share(100, 1, [&](int64_t begin, int64_t) { sum += begin; });
            member.join();
        }
    });
    EXPECT_EQ(sum, 50 * 4950);
}

TEST(Team, RunsAgainAndAgain) {
    Team team(3);
    int total = 0;
    for (int round = 0; round < 300; ++round) {
        std::atomic<int> n{0};
        team.run([&](Member& member) {
            member.fork();
            ++n;
            member.join();
        });
        total += n;
    }
    EXPECT_EQ(total, 900);
}

}  // namespace
}  // namespace ggmlx
