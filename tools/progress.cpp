#include "tools/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "tools/args.h"

namespace cli {

Progress::Progress(std::string label, bool wanted)
    : label_(std::move(label)), visible_(wanted && isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}

Progress::~Progress() {
    if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::update(uint64_t done_bytes, uint64_t total_bytes) {
    const auto now = Clock::now();
    if (!visible_ || total_bytes == 0 || now - last_draw_ < std::chrono::milliseconds(100)) return;
    last_draw_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = seconds > 0 ? static_cast<double>(done_bytes) / seconds : 0;
    const std::string line =
        fmt::format("\r\033[K{}  {}%  {} of {}  {}/s", label_, 100 * done_bytes / total_bytes, human_bytes(done_bytes),
                    human_bytes(total_bytes), human_bytes(static_cast<uint64_t>(rate)));
    std::fputs(line.c_str(), stderr);
}

}  // namespace cli
