// Counts through a replaced operator new, or, under the address sanitizer, which has one of its own, through its hook.
// In a file of its own, so that no compiler sees through it and complains.

#include "ggmlx/file/allocation_count.h"

#if defined(__SANITIZE_ADDRESS__)

#include <sanitizer/allocator_interface.h>

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
