#pragma once
// A progress line on stderr, for people: drawn only when stderr is a terminal, and erased when done.

#include <chrono>
#include <cstdint>
#include <string>

namespace cli {

/// One thread at a time.
class Progress {
  public:
    /// Draws nothing unless `wanted` and stderr is a terminal.
    Progress(std::string label, bool wanted);
    ~Progress();  ///< erases the line
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Redraws at most ten times a second: "label  42%  1.20 GiB of 2.86 GiB  350 MiB/s".
    void update(uint64_t done_bytes, uint64_t total_bytes);

  private:
    using Clock = std::chrono::steady_clock;
    std::string label_;
    bool visible_;
    Clock::time_point start_, last_draw_{};
};

}  // namespace cli
