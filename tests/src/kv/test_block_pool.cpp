#include <gtest/gtest.h>

#include "ggmlx/core/error.h"
#include "src/kv/block_pool.h"

namespace llm {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnceThenFails) {
    BlockPool pool(3);
    EXPECT_EQ(pool.allocate(), 0);
    EXPECT_EQ(pool.allocate(), 1);
    EXPECT_EQ(pool.allocate(), 2);
    EXPECT_EQ(pool.n_free(), 0);
    try {
        pool.allocate();
        FAIL() << "a fourth block was handed out";
    } catch (const ggmlx::Error& e) {
        EXPECT_EQ(e.kind(), ggmlx::ErrorKind::OutOfMemory);
    }
}

TEST(BlockPool, FreesABlockWithItsLastOwner) {
    BlockPool pool(1);
    const BlockId b = pool.allocate();
    pool.retain(b);
    pool.release(b);
    EXPECT_EQ(pool.n_free(), 0);
    EXPECT_EQ(pool.n_owners(b), 1);
    pool.release(b);
    EXPECT_EQ(pool.n_free(), 1);
    EXPECT_EQ(pool.n_owners(b), 0);
}

}  // namespace
}  // namespace llm
