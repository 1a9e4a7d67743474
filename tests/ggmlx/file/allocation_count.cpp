// Counts through a replaced operator new, or, under the address sanitizer, which has one of its own, through its hook.
// In a file of its own, so that no compiler sees through it and complains.

#include "ggmlx/file/allocation_count.h"

#if defined(__SANITIZE_ADDRESS__)

// As in <sanitizer/allocator_interface.h>, which g++ does not bring along everywhere.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));

namespace {
void count(const volatile void*, size_t size) { ggmlx::test::allocated_bytes += size; }
void ignore(const volatile void*) {}
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(count, ignore);
}  // namespace

#else

#include <cstdlib>
#include <new>

void* operator new(size_t size) {
    ggmlx::test::allocated_bytes += size;
    if (void* p = std::malloc(size ? size : 1)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

#endif
