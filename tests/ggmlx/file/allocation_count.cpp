// Replaces operator new by one that counts. In a file of its own, so that no compiler sees through it and complains.

#include "ggmlx/file/allocation_count.h"

#include <cstdlib>
#include <new>

void* operator new(size_t size) {
    ggmlx::test::allocated_bytes += size;
    if (void* p = std::malloc(size ? size : 1)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
