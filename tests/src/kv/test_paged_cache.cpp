// PagedCache against a simple model: every sequence is a list of numbers, the cache's bytes are a plain array that is
// written and copied as the cache says. Whatever happens, reading through the block table gives the list back.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ggmlx/core/error.h"
#include "src/kv/paged_cache.h"

namespace llm {
namespace {

using ggmlx::DType;
using ggmlx::ErrorKind;

const std::vector<KvLayer> kOneLayer{{2, 8, 4, "blk.0.attn_k.weight"}};

template <class F>
ggmlx::Error error_of(F&& f) {
    try {
        f();
    } catch (const ggmlx::Error& e) {
        return e;
    }
    return {ErrorKind::Io, "no error"};
}

PagedCacheLayout layout(int64_t n_ctx, int64_t n_sequences, int64_t n_blocks = 0) {
    PagedCacheLayout l;
    l.n_ctx = n_ctx;
    l.n_sequences = n_sequences;
    l.n_blocks = n_blocks;
    return l;
}

TEST(PagedCache, DeclaresOneKAndOneVPerLayer) {
    ggmlx::TensorSet tensors;
    const std::vector<KvLayer> layers{{2, 8, 4, "a"}, {3, 16, 16, "b"}};
    PagedCacheLayout l = layout(130, 3);
    l.k = DType::F32;
    l.v = DType::F8_E4M3;
    const PagedCache cache(tensors, layers, l);
    ASSERT_EQ(tensors.size(), 4);
    EXPECT_EQ(tensors.get("blk.0.cache_k").shape(), (ggmlx::Shape{6, 2, 128, 8}));
    EXPECT_EQ(tensors.get("blk.1.cache_v").shape(), (ggmlx::Shape{6, 3, 128, 16}));
    EXPECT_EQ(tensors.get("blk.1.cache_k").dtype(), DType::F32);
    EXPECT_EQ(tensors.get("blk.1.cache_v").dtype(), DType::F8_E4M3);
    EXPECT_EQ(tensors.get("blk.0.cache_v").kind(), ggmlx::TensorKind::State);
    EXPECT_EQ(tensors.get("blk.0.cache_v").info().role, ggmlx::Role::Cache);
    EXPECT_EQ(cache.size_bytes(), 6u * 128 * ((2 * 8 + 3 * 16) * 4 + (2 * 4 + 3 * 16)));
    EXPECT_EQ(cache.states().size(), 4u);
}

TEST(PagedCache, RefusesTypesThatNoKernelReads) {
    ggmlx::TensorSet tensors;
    PagedCacheLayout l = layout(10, 1);
    l.v = DType::Q4_K;
    const auto e = error_of([&] { PagedCache(tensors, kOneLayer, l); });
    EXPECT_EQ(e.kind(), ErrorKind::InvalidArgument);
    EXPECT_NE(std::string(e.what()).find("--cache-type-v"), std::string::npos) << e.what();
}

TEST(PagedCache, RefusesSizesBeyondItsSlots) {
    ggmlx::TensorSet tensors;
    for (const auto& l : {layout(0, 1), layout(1, 0), layout(int64_t{1} << 40, 1), layout(1 << 20, 1 << 20)})
        EXPECT_EQ(error_of([&] { PagedCache(tensors, kOneLayer, l); }).kind(), ErrorKind::InvalidArgument);
}

TEST(PagedCache, SaysWithNumbersThatTheContextIsFullAndChangesNothing) {
    ggmlx::TensorSet tensors;
    PagedCache cache(tensors, kOneLayer, layout(300, 2, 3));
    const SequenceId a = cache.open(), b = cache.open();
    cache.extend(a, 250);
    auto e = error_of([&] { cache.extend(a, 51); });
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    EXPECT_STREQ(e.what(), "context full: 250 tokens are in it, 51 more do not fit into the context of 300 (-c)");
    e = error_of([&] { cache.extend(b, 129); });
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    EXPECT_STREQ(e.what(),
                 "context full: 129 more tokens need 2 blocks of 128 tokens, but only 1 of the KV cache's 3 are free");
    EXPECT_EQ(cache.length(a), 250);
    EXPECT_EQ(cache.length(b), 0);
    EXPECT_EQ(cache.pool().n_free(), 1);
    cache.extend(b, 128);
    EXPECT_EQ(error_of([&] { cache.open(); }).kind(), ErrorKind::OutOfMemory);
}

TEST(PagedCache, PadsInputsWithMinusOne) {
    ggmlx::TensorSet tensors;
    PagedCache cache(tensors, kOneLayer, layout(200, 2));
    const SequenceId a = cache.open(), b = cache.open();
    cache.extend(a, 127);
    cache.extend(b, 1);
    cache.extend(a, 2);
    StepInputs inputs;
    const StepShape shape{6, 1, 3};
    const std::vector<SequenceSpan> spans{{b, 0, 1}, {a, 127, 2}};
    cache.fill_inputs(spans, shape, inputs);
    EXPECT_EQ(inputs.at("kv.slots"), (std::vector<int32_t>{128, 127, 256, -1, -1, -1}));
    EXPECT_EQ(inputs.at("kv.block_table"), (std::vector<int32_t>{1, -1, 0, 2, -1, -1}));
}

TEST(PagedCache, RefusesSequencesThatAreNotOpenAndForeignSnapshots) {
    ggmlx::TensorSet tensors, other_tensors;
    PagedCache cache(tensors, kOneLayer, layout(10, 1)), other(other_tensors, kOneLayer, layout(10, 1));
    EXPECT_EQ(error_of([&] { cache.length(0); }).kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error_of([&] { cache.length(-1); }).kind(), ErrorKind::InvalidArgument);
    const SequenceId a = cache.open(), b = other.open();
    const auto snapshot = other.snapshot(b);
    EXPECT_EQ(error_of([&] { cache.restore(a, *snapshot); }).kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error_of([&] { cache.truncate(a, 1); }).kind(), ErrorKind::InvalidArgument);
}

TEST(PagedCache, SnapshotOutlivesItsCache) {
    std::unique_ptr<CacheSnapshot> snapshot;
    {
        ggmlx::TensorSet tensors;
        PagedCache cache(tensors, kOneLayer, layout(10, 1));
        const SequenceId a = cache.open();
        cache.extend(a, 5);
        snapshot = cache.snapshot(a);
    }
    EXPECT_EQ(snapshot->n_tokens(), 5);
}

/// The cache under test with the bytes it describes (one number per slot) and what every sequence should hold.
struct World {
    ggmlx::TensorSet tensors;
    PagedCache cache;
    std::vector<int> slots;
    std::map<SequenceId, std::vector<int>> sequences;
    struct Saved {
        std::unique_ptr<CacheSnapshot> snapshot;
        std::vector<int> contents;
    };
    std::vector<Saved> saved;
    int next_value = 0;

    explicit World(const PagedCacheLayout& l)
        : cache(tensors, kOneLayer, l), slots(static_cast<size_t>(l.total_blocks()) * 128, -1) {}

    /// Extends, then does what a step does: copies first, then writes.
    bool extend(SequenceId s, int64_t n) {
        const int64_t first = cache.length(s), free_before = cache.pool().n_free();
        try {
            cache.extend(s, n);
        } catch (const ggmlx::Error&) {
            EXPECT_EQ(cache.length(s), first);
            EXPECT_EQ(cache.pool().n_free(), free_before);
            return false;
        }
        for (const BlockCopy& c : cache.take_copies())
            std::copy_n(slots.begin() + c.from * 128, 128, slots.begin() + c.to * 128);
        StepInputs inputs;
        const std::vector<SequenceSpan> span{{s, first, n}};
        cache.fill_inputs(span, {n, 1, 1}, inputs);
        for (int32_t slot : inputs.at("kv.slots")) {
            slots[static_cast<size_t>(slot)] = next_value;
            sequences[s].push_back(next_value++);
        }
        return true;
    }

    void check() {
        std::vector<int32_t> owners(static_cast<size_t>(cache.pool().n_blocks()), 0);
        for (const auto& [s, contents] : sequences) {
            ASSERT_EQ(cache.length(s), static_cast<int64_t>(contents.size()));
            const auto blocks = cache.blocks(s);
            ASSERT_EQ(blocks.size(), (contents.size() + 127) / 128);
            for (BlockId b : blocks) ++owners[static_cast<size_t>(b)];
            for (size_t p = 0; p < contents.size(); ++p)
                ASSERT_EQ(slots[static_cast<size_t>(blocks[p / 128]) * 128 + p % 128], contents[p]) << "position " << p;
        }
        if (!saved.empty()) return;  // snapshots own blocks too
        int64_t n_free = 0;
        for (size_t b = 0; b < owners.size(); ++b) {
            ASSERT_EQ(cache.pool().n_owners(static_cast<BlockId>(b)), owners[b]);
            n_free += owners[b] == 0;
        }
        ASSERT_EQ(cache.pool().n_free(), n_free) << "a block leaked";
    }
};

TEST(PagedCache, KeepsEverySequencesContentsThroughRandomWork) {
    int failures = 0, copies_possible = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        World w(layout(600, 4, 14));
        const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
        const auto any = [&] {
            return std::next(w.sequences.begin(), static_cast<std::ptrdiff_t>(below(w.sequences.size())));
        };
        for (int step = 0; step < 400; ++step) {
            const size_t action = below(10);
            if (w.sequences.empty() || (action == 0 && w.sequences.size() < 4)) {
                w.sequences[w.cache.open()] = {};
            } else if (action <= 4) {
                failures += !w.extend(any()->first, 1 + static_cast<int64_t>(below(action == 4 ? 300 : 40)));
            } else if (action == 5) {
                auto it = any();
                const size_t n = below(it->second.size() + 1);
                w.cache.truncate(it->first, static_cast<int64_t>(n));
                it->second.resize(n);
            } else if (action == 6) {
                const auto it = any();
                w.cache.close(it->first);
                w.sequences.erase(it);
            } else if (action == 7 && w.saved.size() < 3) {
                const auto it = any();
                w.saved.push_back({w.cache.snapshot(it->first), it->second});
            } else if (action == 8 && !w.saved.empty()) {
                const auto it = any();
                const auto& from = w.saved[below(w.saved.size())];
                w.cache.restore(it->first, *from.snapshot);
                it->second = from.contents;
                copies_possible += from.contents.size() % 128 != 0;
            } else if (action == 9 && !w.saved.empty()) {
                w.saved.erase(w.saved.begin() + static_cast<std::ptrdiff_t>(below(w.saved.size())));
            }
            w.check();
            if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
        }
        w.saved.clear();
        for (const auto& entry : w.sequences) w.cache.close(entry.first);
        EXPECT_EQ(w.cache.pool().n_free(), 14) << "seed " << seed;
    }
    EXPECT_GT(failures, 0) << "the pool never ran full: the test is too easy";
    EXPECT_GT(copies_possible, 0);
}

}  // namespace
}  // namespace llm
