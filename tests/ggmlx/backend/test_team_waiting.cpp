// A team that waits gives its processors away: nobody spins without end, least of all where threads outnumber
// processors.

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "ggmlx/backend/cpu/threads.h"
#include "ggmlx/core/parallel.h"

namespace ggmlx {
namespace {

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Processor time that n_threads use while one of them is late, as a share of what they would use if all others spun.
double share_of_spinning(int n_threads) {
    constexpr double kLateSeconds = 0.5;
    Team team(n_threads);
    const auto meet = [](Member& member) {
        member.fork();
        member.join();
    };
    team.run(meet);  // threads exist from here on
    const double before = processor_seconds();
    team.run([&](Member& member) {
        if (member.index() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(kLateSeconds));
        meet(member);
    });
    return (processor_seconds() - before) / (kLateSeconds * std::min(usable_cpus(), n_threads - 1));
}

TEST(WaitingTeam, SleepsWhileAThreadIsLate) {
    EXPECT_LT(share_of_spinning(2), 0.5);
    EXPECT_LT(share_of_spinning(2 * usable_cpus() + 1), 0.5);
}

TEST(WaitingTeam, ThatIsTwiceTooLargeMeetsManyTimes) {
    Team team(2 * usable_cpus());
    int64_t meetings = 0;
    team.run([&](Member& member) {
        for (int round = 0; round < 2000; ++round) {
            if (member.index() == 0) ++meetings;
            member.fork();
            member.join();
        }
    });
    EXPECT_EQ(meetings, 2000);
}

}  // namespace
}  // namespace ggmlx
