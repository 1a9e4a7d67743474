#include "ggmlx/backend/cpu/threads.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#ifdef GGMLX_OPENMP
#include <omp.h>
#endif

#include "ggmlx/core/parallel.h"
#include "ggmlx/core/spin.h"

namespace ggmlx {
namespace {

using TeamClock = std::chrono::steady_clock;

// A meeting of the team in a busy step takes about a microsecond, waking a sleeper about fifty. So threads spin through
// the gaps of a step, giving way to others after a moment, and sleep when a device elsewhere takes its time.
constexpr auto kSpin = std::chrono::microseconds(100);
constexpr auto kYield = std::chrono::milliseconds(2);

}  // namespace

Team::Team(int n_threads, std::vector<int> group_of_thread)
    : n_threads_(n_threads),
      oversubscribed_(n_threads > usable_cpus()),
      mailboxes_(std::make_unique<Mailbox[]>(static_cast<size_t>(n_threads))) {
    for (size_t thread = 0; thread < group_of_thread.size(); ++thread) {
        const auto group = static_cast<size_t>(group_of_thread[thread]);
        members_.resize(std::max(members_.size(), group + 1));
        members_[group].push_back(static_cast<int>(thread));
    }
}

Member::Member(Team& team, int index, int size) : team_(&team), index_(index), size_(size), group_size_(size) {
    const auto& groups = team.members_;
    const auto is_empty = [&](const std::vector<int>& threads) { return threads.empty() || threads.front() >= size; };
    if (groups.empty() || std::any_of(groups.begin(), groups.end(), is_empty)) return;
    n_groups_ = static_cast<int>(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
        const auto self = std::find(groups[g].begin(), groups[g].end(), index);
        if (self == groups[g].end()) continue;
        group_ = static_cast<int>(g);
        place_ = static_cast<int>(self - groups[g].begin());
        group_size_ = static_cast<int>(std::lower_bound(self, groups[g].end(), size) - groups[g].begin());
    }
}

void Team::wait_for(const std::atomic<uint32_t>& word, uint32_t value) const noexcept {
    const auto arrived = [&] { return word.load(std::memory_order_acquire) == value; };
    if (arrived()) return;
    const auto start = TeamClock::now();
    if (!oversubscribed_) {
        do {
            for (int i = 0; i < 256; ++i) {
                if (arrived()) return;
                cpu_pause();
            }
        } while (TeamClock::now() - start < kSpin);
    }
    do {
        if (arrived()) return;
        std::this_thread::yield();
    } while (TeamClock::now() - start < kYield);
    for (uint32_t now; (now = word.load(std::memory_order_acquire)) != value;)
        word.wait(now, std::memory_order_acquire);
}

void Member::fork() noexcept {
    if (size_ == 1) return;
    ++part_;
    n_shares_ = 0;
    if (index_ == 0) {
        team_->forked_.store(part_, std::memory_order_release);
        team_->forked_.notify_all();
    } else {
        team_->wait_for(team_->forked_, part_);
    }
    // The bank of the part before, in which nobody takes pieces any more.
    for (auto& next : team_->mailboxes_[static_cast<size_t>(index_)].next[(part_ & 1) ^ 1])
        next.store(0, std::memory_order_relaxed);
}

void Member::join() noexcept {
    if (size_ == 1) return;
    if (index_ > 0) {
        auto& joined = team_->mailboxes_[static_cast<size_t>(index_)].joined;
        joined.store(part_, std::memory_order_release);
        joined.notify_one();
        return;
    }
    for (int i = 1; i < size_; ++i) team_->wait_for(team_->mailboxes_[static_cast<size_t>(i)].joined, part_);
}

void Team::begin_run(int index) noexcept {
    Mailbox& mailbox = mailboxes_[static_cast<size_t>(index)];
    mailbox.joined.store(0, std::memory_order_relaxed);
    for (auto& bank : mailbox.next)
        for (auto& next : bank) next.store(0, std::memory_order_relaxed);
    if (index == 0) forked_.store(0, std::memory_order_relaxed);
}

#ifdef GGMLX_OPENMP
void Team::run(const std::function<void(Member&)>& body) {
#pragma omp parallel num_threads(n_threads_)
    {
        const int index = omp_get_thread_num();
        begin_run(index);
#pragma omp barrier
        Member member(*this, index, omp_get_num_threads());
        body(member);
    }
}
#else
void Team::run(const std::function<void(Member&)>& body) {
    for (int index = 0; index < n_threads_; ++index) begin_run(index);
    const auto run_member = [&](int index) {
        Member member(*this, index, n_threads_);
        body(member);
    };
    std::vector<std::jthread> others;
    for (int index = 1; index < n_threads_; ++index) others.emplace_back([&, index] { run_member(index); });
    run_member(0);
}
#endif

}  // namespace ggmlx
