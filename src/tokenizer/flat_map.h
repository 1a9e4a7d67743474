#pragma once
// FlatMap: 64-bit keys to small values in one array, open addressing. Built once, then only read: several times faster
// than std::unordered_map for the millions of look-ups of a long text.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace llm {

/// Two 32-bit ids as one key.
constexpr uint64_t pair_key(uint32_t a, uint32_t b) { return (uint64_t{a} << 32) | b; }

template <class Value>
class FlatMap {
  public:
    /// Room for n keys; more grow it.
    explicit FlatMap(size_t n = 0) { rehash(n); }

    /// Sets the value of a key, new or old. Key ~0 is not allowed.
    void set(uint64_t key, Value value) {
        if (2 * (size_ + 1) > slots_.size()) rehash(2 * (size_ + 1));
        Slot& slot = slots_[find_slot(key)];
        size_ += slot.key == kEmpty;
        slot = {key, value};
    }
    /// Null if the key is not there.
    const Value* find(uint64_t key) const {
        const Slot& slot = slots_[find_slot(key)];
        return slot.key == key ? &slot.value : nullptr;
    }
    size_t size() const { return size_; }
    /// Calls f(key, value) for all, in no order.
    template <class F>
    void for_each(F&& f) const {
        for (const Slot& slot : slots_)
            if (slot.key != kEmpty) f(slot.key, slot.value);
    }

  private:
    static constexpr uint64_t kEmpty = ~uint64_t{0};
    struct Slot {
        uint64_t key = kEmpty;
        Value value{};
    };

    size_t find_slot(uint64_t key) const {
        size_t i = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);  // Fibonacci hashing
        while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
        return i;
    }
    void rehash(size_t n) {
        int bits = 4;
        while ((size_t{1} << bits) < 2 * n) ++bits;
        const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(size_t{1} << bits));
        shift_ = 64 - bits;
        for (const Slot& slot : old)
            if (slot.key != kEmpty) slots_[find_slot(slot.key)] = slot;
    }

    std::vector<Slot> slots_;
    size_t size_ = 0;
    int shift_ = 60;
};

}  // namespace llm
