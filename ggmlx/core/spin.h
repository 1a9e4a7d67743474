#pragma once
// The instruction that tells a processor it is spinning, for loops that wait a moment before they sleep.

namespace ggmlx {

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace ggmlx
