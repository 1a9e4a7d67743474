#include "tools/interrupt.h"

#include <unistd.h>

namespace cli {
namespace {

constexpr int kExitInterrupted = 130;  // what shells report for SIGINT

volatile std::sig_atomic_t n_interrupts = 0;

void on_interrupt(int) {
    n_interrupts = n_interrupts + 1;
    if (n_interrupts > 1) _exit(kExitInterrupted);
}

}  // namespace

Interrupt::Interrupt() {
    n_interrupts = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);  // without SA_RESTART: a read that waits for input returns
    sigaction(SIGINT, &action, &previous_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &previous_, nullptr); }

bool Interrupt::requested() const { return n_interrupts > 0; }

void Interrupt::clear() { n_interrupts = 0; }

}  // namespace cli
