#pragma once
// Rows of a cache, of every type: written from float32 and read back as float32, exactly. Everything else in attention
// works on the floats.

#include "ggmlx/backend/cpu/kernels/matmul_float.inl.h"
#include "ggmlx/quant/tiles.h"

namespace ggmlx {

/// Eight floats as stored values of a plain type.
template <class Isa>
void store_plain(float* p, typename Isa::F8 a, PlainF32<Isa>) {
    Isa::store8(p, a);
}
template <class Isa>
void store_plain(uint16_t* p, typename Isa::F8 a, PlainF16<Isa>) {
    Isa::store8_f16(p, a);
}
template <class Isa>
void store_plain(uint16_t* p, typename Isa::F8 a, PlainBF16<Isa>) {
    Isa::store8_bf16(p, a);
}
template <class Isa>
void store_plain(uint8_t* p, typename Isa::F8 a, PlainF8<Isa>) {
    Isa::store8_f8(p, a);
}

/// A row of plain values.
template <class Isa, class Plain>
struct PlainRow {
    using F8 = typename Isa::F8;
    using Stored = typename Plain::Stored;

    /// Where value k lies, in bytes from the row's beginning.
    static int64_t offset(int64_t k) { return k * static_cast<int64_t>(sizeof(Stored)); }
    /// Values k … k + 31.
    static void load32(const void* row, int64_t k, F8 (&values)[4]) {
        for (int i = 0; i < 4; ++i) values[i] = Plain::load(static_cast<const Stored*>(row) + k + 8 * i);
    }
    /// n <= 8 values from k on, k a multiple of 8; the other lanes are finite.
    static F8 load_first(const void* row, int64_t k, int64_t n) {
        const Stored* p = static_cast<const Stored*>(row) + k;
        return n == 8 ? Plain::load(p) : load_plain_first<Plain>(p, n);
    }
    static void store(const float* x, int64_t n, void* row) {
        auto* out = static_cast<Stored*>(row);
        int64_t k = 0;
        for (; k + 8 <= n; k += 8) store_plain<Isa>(out + k, Isa::load8(x + k), Plain{});
        if (k == n) return;
        Stored lanes[8];
        store_plain<Isa>(lanes, ggmlx::load_first<Isa>(x + k, n - k, 0.0f), Plain{});
        for (int64_t i = 0; k + i < n; ++i) out[k + i] = lanes[i];
    }
};

/// A row of RowQ8_0 blocks.
template <class Isa>
struct BlockRow {
    using F8 = typename Isa::F8;

    static int64_t offset(int64_t k) { return (k + 31) / 32 * static_cast<int64_t>(sizeof(RowQ8_0)); }
    static void load32(const void* row, int64_t k, F8 (&values)[4]) {
        const RowQ8_0& block = static_cast<const RowQ8_0*>(row)[k / 32];
        const F8 d = Isa::splat8_f16(block.d);
        for (int i = 0; i < 4; ++i) values[i] = Isa::mul(d, Isa::load8_int8(block.q + 8 * i));
    }
    /// Also reads what pads the last block.
    static F8 load_first(const void* row, int64_t k, int64_t) {
        const RowQ8_0& block = static_cast<const RowQ8_0*>(row)[k / 32];
        return Isa::mul(Isa::splat8_f16(block.d), Isa::load8_int8(block.q + k % 32));
    }
    static void store(const float* x, int64_t n, void* row) {
        auto* out = static_cast<RowQ8_0*>(row);
        for (int64_t k = 0; k < n; k += 32, ++out) {
            float values[32];
            const int64_t left = n - k;
            for (int64_t i = 0; i < 32; ++i) values[i] = i < left ? x[k + i] : 0.0f;
            store_block(values, *out);
        }
    }

  private:
    static void store_block(const float (&x)[32], RowQ8_0& out) {
        F8 most = Isa::splat8(0.0f);
        for (int i = 0; i < 32; i += 8) most = Isa::abs_bits_max(Isa::load8(x + i), most);
        const float amax = Isa::largest_abs(most);
        if (!(amax <= 3.402823466e38f)) {  // or NaN
            out = {0x7e00, {}};
            return;
        }
        const float wanted = amax / 127.0f;
        uint16_t f16[8];
        Isa::store8_f16(f16, Isa::splat8(wanted < 65504.0f ? wanted : 65504.0f));
        float d[8];
        Isa::store8(d, Isa::splat8_f16(f16[0]));
        out.d = f16[0];
        const F8 inverse = Isa::splat8(d[0] == 0.0f ? 0.0f : 1.0f / d[0]);
        for (int i = 0; i < 32; i += 8) {
            const F8 code = Isa::mul(Isa::load8(x + i), inverse);
            Isa::store8_int8(out.q + i, Isa::min(Isa::max(code, Isa::splat8(-127.0f)), Isa::splat8(127.0f)));
        }
    }
};

template <class Isa, class Row>
void store_cache_row(const float* x, int64_t n, void* row) noexcept {
    Row::store(x, n, row);
}

/// Dims [begin, end) of a row in chunks of eight, `step` floats apart.
template <class Isa, class Row>
void unpack_row(const void* row, int64_t begin, int64_t end, float* out, int64_t step) {
    int64_t k = begin;
    for (; k + 32 <= end; k += 32) {
        typename Isa::F8 values[4];
        Row::load32(row, k, values);
        for (int i = 0; i < 4; ++i, out += step) Isa::store8(out, values[i]);
    }
    for (; k < end; k += 8, out += step) Isa::store8(out, Row::load_first(row, k, end - k < 8 ? end - k : 8));
}

/// The wanted dims of all rows; the chunks of `side_by_side` rows alternate.
template <class Isa, class Row, int side_by_side>
void unpack_rows(const UnpackArgs& a) {
    const int64_t n_chunks = (a.dim_end - a.dim_begin + 7) / 8;
    const char* row = static_cast<const char*>(a.rows);
    for (int64_t r = 0; r < a.n_rows; ++r, row += a.row_bytes) {
        float* out = a.out + (r / side_by_side * side_by_side * n_chunks + r % side_by_side) * 8;
        unpack_row<Isa, Row>(row, a.dim_begin, a.dim_end, out, 8 * side_by_side);
    }
}

template <class Isa, class Row>
void unpack_values(const UnpackArgs& a) noexcept {
    unpack_rows<Isa, Row, 1>(a);
}

template <class Isa, class Row>
void unpack_keys(const UnpackArgs& a) noexcept {
    constexpr int kSideBySide = Isa::kRows / 8;
    unpack_rows<Isa, Row, kSideBySide>(a);
    const int64_t n_chunks = (a.dim_end - a.dim_begin + 7) / 8;
    for (int64_t r = a.n_rows; r % 8 != 0; ++r) {
        float* out = a.out + (r / kSideBySide * kSideBySide * n_chunks + r % kSideBySide) * 8;
        for (int64_t c = 0; c < n_chunks; ++c) Isa::store8(out + c * kSideBySide * 8, Isa::splat8(0.0f));
    }
}

}  // namespace ggmlx
