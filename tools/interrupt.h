#pragma once
// Ctrl-C as a wish to stop: the first one sets a flag, the second one ends the program at once.

#include <csignal>

namespace cli {

/// Catches SIGINT while it lives. One at a time.
class Interrupt {
  public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    bool requested() const;
    /// Forgets what was requested.
    void clear();

  private:
    struct sigaction previous_ {};
};

}  // namespace cli
