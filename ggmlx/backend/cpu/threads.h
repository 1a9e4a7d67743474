#pragma once
// The team of threads that runs a step. It is formed once per step and stays together. A step is a chain of parts that
// the whole team works on (fork() to join()) with parts between them that thread 0 does alone. Waiting threads spin for
// a short while and then sleep. Inside a part threads work on shares of their own and then on what others left over.
// Runs on OpenMP (this room's threads.cpp is the only includer of omp.h), or on std::jthread where OpenMP was left out,
// which is what ThreadSanitizer needs.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ggmlx {

class Team;

/// Who does a piece of work: all threads, or those of the caller's group.
enum class Among { Team, Group };

/// One thread's place in a running team. fork(), join(), barrier() and share() must be called by all members alike.
class Member {
  public:
    /// A team of one: share() does everything, nothing waits.
    Member() = default;

    int index() const { return index_; }
    /// Threads in this run; up to n_threads() were asked for.
    int size() const { return size_; }
    int n_threads() const;
    /// The groups of the team (its threads on one memory node each), and the one this thread belongs to. One group if
    /// the team has none, or if one of them would have no thread in this run.
    int n_groups() const { return n_groups_; }
    int group() const { return group_; }
    int size(Among among) const { return among == Among::Team ? size_ : group_size_; }

    /// Begins a part of the whole team: what thread 0 did before is visible to all.
    void fork() noexcept;
    /// Ends it: thread 0 waits until all have come here and then sees what they did. The others go on to the next
    /// fork().
    void join() noexcept;
    /// Between the two: all wait for all.
    void barrier() noexcept {
        join();
        fork();
    }
    /// Between the two: calls f(begin, end) for pieces of [0, n), each of `grain` items but the last, every piece on
    /// one thread. Each thread begins with a range of its own, in increasing order, and then takes pieces that others
    /// have not begun. Does not wait for the others.
    template <class F>
    void share(int64_t n, int64_t grain, F f) {
        share(Among::Team, n, grain, f);
    }
    /// Among::Group: each group has [0, n) of its own, with an n, grain and f of its own.
    template <class F>
    void share(Among among, int64_t n, int64_t grain, F f);

  private:
    friend class Team;
    Member(Team& team, int index, int size);

    Team* team_ = nullptr;
    int index_ = 0, size_ = 1;
    int group_ = 0, n_groups_ = 1;
    int place_ = 0, group_size_ = 1;  ///< in the group: where this thread stands, how many there are
    uint32_t part_ = 0;               ///< forks passed
    int n_shares_ = 0;                ///< since the last fork
};

class Team {
  public:
    /// n_threads >= 1. group_of_thread: the group of each thread, counted from 0, every group with a thread; empty: no
    /// groups.
    explicit Team(int n_threads, std::vector<int> group_of_thread = {});
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    /// Calls body(member) on all threads at once, member 0 on the caller, and returns when all have returned. body must
    /// not throw. Not reentrant, and for one caller at a time.
    void run(const std::function<void(Member&)>& body);
    /// The number of threads asked for; the system may give run() fewer.
    int n_threads() const { return n_threads_; }

  private:
    friend class Member;
    static constexpr int kShares = 8;  ///< calls of share() in one part before the team meets in between
    /// What one thread tells the others, on cache lines of its own. A part uses one of two banks of counters, so that a
    /// thread can clear the other one, which nobody reads before the next fork.
    struct alignas(64) Mailbox {
        std::atomic<uint32_t> joined{0};                      ///< parts that the thread has finished
        alignas(64) std::atomic<int64_t> next[2][kShares]{};  ///< the first piece of its range that nobody took
    };

    void begin_run(int index) noexcept;
    /// Member i of a group in a run of so many threads.
    int thread_of_group(int group, int i) const noexcept {
        return members_[static_cast<size_t>(group)][static_cast<size_t>(i)];
    }
    void wait_for(const std::atomic<uint32_t>& word, uint32_t value) const noexcept;

    const int n_threads_;
    std::vector<std::vector<int>> members_;  ///< threads by group, in increasing order
    const bool oversubscribed_;              ///< more threads than processors: never spin without yielding
    const std::unique_ptr<Mailbox[]> mailboxes_;
    alignas(64) std::atomic<uint32_t> forked_{0};  ///< parts begun
};

inline int Member::n_threads() const { return team_ ? team_->n_threads() : 1; }

template <class F>
void Member::share(Among among, int64_t n, int64_t grain, F f) {
    const int64_t n_pieces = (n + grain - 1) / grain;
    const auto run_piece = [&](int64_t piece) {
        const int64_t begin = piece * grain;
        f(begin, n - begin < grain ? n : begin + grain);
    };
    if (size_ == 1) {
        for (int64_t piece = 0; piece < n_pieces; ++piece) run_piece(piece);
        return;
    }
    if (n_shares_ == Team::kShares) barrier();
    const int share = n_shares_++;
    const bool in_group = among == Among::Group && n_groups_ > 1;
    const int place = in_group ? place_ : index_, size = in_group ? group_size_ : size_;
    for (int i = 0; i < size; ++i) {
        const int owner = place + i < size ? place + i : place + i - size;
        const int64_t first = n_pieces * owner / size, last = n_pieces * (owner + 1) / size;
        const int thread = in_group ? team_->thread_of_group(group_, owner) : owner;
        std::atomic<int64_t>& next = team_->mailboxes_[static_cast<size_t>(thread)].next[part_ & 1][share];
        // Looking before taking: a range that is used up costs others a read and no more.
        while (next.load(std::memory_order_relaxed) < last - first) {
            const int64_t piece = first + next.fetch_add(1, std::memory_order_relaxed);
            if (piece >= last) break;
            run_piece(piece);
        }
    }
}

}  // namespace ggmlx
