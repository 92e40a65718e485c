// Distinct values of an array: keys of floats, tables with a place for every value, and ranks read from tables.
//
//     order_floats   from bits of floats to keys: unsigned integers in the order of the numbers, one for all NaN, one
//                    for both zeros
//     restore_floats from keys to bits of floats, in place
//     guess          the range of a table, from a sample of the elements
//     flag           a flag for each value that occurs
//     count          how often each value occurs
//     place_first    where each value occurs first
//     list           the values in a table of at most SHARED_FLAGS places, and how often they occur
//     look_up        a number for every element, from a table
//
// A table has a place for each of the `size` values from `least` on. A value outside the table only changes `lowest` or
// `highest` in the description of the table, as a number in unsigned order (`rank`). For a table of at most
// SHARED_FLAGS or SHARED_COUNTS places, every block fills a table in shared memory, and the tables are then combined. A
// larger table is filled in global memory; `flag` and `place_first` read a place before they store to it, so that a
// value seen before costs only a load from a cache. If there is no room for all places, the table stays empty.
//
// Launch: any number of blocks of THREADS threads; guess and list: one block.
// Macros: KEY, an integer type of 1 to 8 bytes; THREADS.

#include "../device/tile_prefix.cuh"

using Key = KEY;
using Wide = unsigned long long;

constexpr int ITEMS = 8;  // elements that a thread loads at a time
constexpr int SHARED_FLAGS = 32768, SHARED_COUNTS = 8192;
constexpr bool SIGNED = (Key)-1 < (Key)1;

// The rank of a key is an unsigned integer. Ranks are in the order of the keys, with the same differences.
constexpr Wide SHIFT = SIGNED ? 1ull << 63 : 0;

__device__ inline Wide rank(Key key) {
    return (Wide)(long long)key ^ SHIFT;
}
__device__ inline Key key_of(Wide rank) {
    return (Key)(rank ^ SHIFT);
}

// A table: its least value, its number of places, the least and the largest value seen outside (lowest > highest if all
// values were inside), and the number of distinct values in it. Values are ranks.
struct Table {
    Wide least, size, lowest, highest, values;
};

// The least and the largest of the ranks added so far.
struct Extent {
    Wide least = ~0ull, largest = 0;

    __device__ void add(Wide value) {
        least = min(least, value);
        largest = max(largest, value);
    }
    // Called by all lanes of a warp: combines their extents, so that every lane has the result.
    __device__ void add_lanes() {
        for (int lanes = 16; lanes; lanes /= 2) {
            least = min(least, __shfl_xor_sync(0xffffffffu, least, lanes));
            largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
        }
    }
    __device__ void store(Wide* to_least, Wide* to_largest) const {
        if (least > largest) return;
        atomicMin(to_least, least);
        atomicMax(to_largest, largest);
    }
};

// Calls mark(place, i) for every element i whose value has a place in the table.
template <class Mark>
__device__ inline void for_all_places(const Key* __restrict__ keys, long long n, Table* table, Mark mark) {
    Extent outside;
    const Wide least = table->least, size = table->size;
    const long long step = (long long)THREADS * ITEMS;
    for (long long first = blockIdx.x * step + threadIdx.x; first < n; first += gridDim.x * step) {
        Key part[ITEMS];
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            if (first + j * THREADS < n) part[j] = keys[first + j * THREADS];
        }
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            if (first + j * THREADS >= n) break;
            const Wide place = rank(part[j]) - least;
            if (place < size) {
                mark(place, first + j * THREADS);
            } else {
                outside.add(rank(part[j]));
            }
        }
    }
    outside.store(&table->lowest, &table->highest);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    order_floats(const Key* __restrict__ bits, long long n, Key* __restrict__ keys) {
    constexpr Key SIGN = (Key)((Key)1 << (8 * sizeof(Key) - 1));
    constexpr Key INFINITY_BITS = sizeof(Key) == 8   ? (Key)(0x7ffull << 52)
                                  : sizeof(Key) == 4 ? (Key)0x7f800000
                                                     : (Key)0x7c00;
    constexpr Key QUIET_NAN = (Key)(INFINITY_BITS | INFINITY_BITS >> 1 & ~INFINITY_BITS);
    const long long step = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        Key b = bits[i];
        const Key magnitude = (Key)(b & ~SIGN);
        if (magnitude > INFINITY_BITS) {
            b = QUIET_NAN;
        } else if (magnitude == 0) {
            b = 0;
        }
        keys[i] = (Key)(b & SIGN ? ~b : b | SIGN);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) restore_floats(Key* __restrict__ keys, long long n) {
    constexpr Key SIGN = (Key)((Key)1 << (8 * sizeof(Key) - 1));
    const long long step = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        const Key key = keys[i];
        keys[i] = (Key)(key & SIGN ? key ^ SIGN : ~key);
    }
}

// Stores in `table` and `told` the range of every `step`-th element, widened on each side by an eighth of itself plus
// 64 but within the limits; sets the `words` words of `places` to 0.
extern "C" __global__ void __launch_bounds__(THREADS)
    guess(const Key* __restrict__ keys, long long n, long long step, Wide lower_limit, Wide upper_limit, Table* table,
          Wide* __restrict__ places, long long words, Table* told) {
    __shared__ Wide least, largest;
    if (threadIdx.x == 0) {
        least = ~0ull;
        largest = 0;
    }
    for (long long i = threadIdx.x; i < words; i += THREADS) places[i] = 0;
    __syncthreads();
    Extent found;
#pragma unroll 8
    for (long long i = threadIdx.x * step; i < n; i += THREADS * step) found.add(rank(keys[i]));
    found.add_lanes();
    if (threadIdx.x % 32 == 0) found.store(&least, &largest);
    __syncthreads();
    if (threadIdx.x) return;
    const Wide more = (largest - least) / 8 + 64;
    const Wide from = least - lower_limit > more ? least - more : lower_limit;
    const Wide to = upper_limit - largest > more ? largest + more : upper_limit;
    *table = {from, to - from == ~0ull ? ~0ull : to - from + 1, ~0ull, 0, 0};
    *told = *table;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flag(const Key* __restrict__ keys, long long n, Table* table, unsigned char* places, Wide room) {
    __shared__ unsigned char here[SHARED_FLAGS];
    const Wide size = table->size;
    if (size > room) return;
    if (size > SHARED_FLAGS) {
        for_all_places(keys, n, table, [&](Wide place, long long) {
            if (!places[place]) places[place] = 1;
        });
        return;
    }
    for (unsigned i = threadIdx.x; i < size; i += THREADS) here[i] = 0;
    __syncthreads();
    for_all_places(keys, n, table, [&](Wide place, long long) { here[place] = 1; });
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += THREADS) {
        if (here[i]) places[i] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    count(const Key* __restrict__ keys, long long n, Table* table, Wide* places, Wide room) {
    __shared__ unsigned here[SHARED_COUNTS];
    const Wide size = table->size;
    if (size > room) return;
    if (size > SHARED_COUNTS) {
        for_all_places(keys, n, table, [&](Wide place, long long) { atomicAdd(places + place, 1ull); });
        return;
    }
    for (unsigned i = threadIdx.x; i < size; i += THREADS) here[i] = 0;
    __syncthreads();
    for_all_places(keys, n, table, [&](Wide place, long long) { atomicAdd(here + place, 1u); });
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += THREADS) {
        if (here[i]) atomicAdd(places + i, (Wide)here[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    place_first(const Key* __restrict__ keys, long long n, Table* table, Wide* places, Wide) {
    for_all_places(keys, n, table, [&](Wide place, long long i) {
        if (places[place] > (Wide)i) atomicMin(places + place, (Wide)i);
    });
}

// `counted`: the places of the table are counts, which are stored in `counts`; otherwise they are flags.
extern "C" __global__ void __launch_bounds__(THREADS)
    list(const Table* __restrict__ table, const void* __restrict__ places, Wide room, Key* __restrict__ values,
         long long* __restrict__ counts, int counted, Table* told) {
    if (table->size > room) return;
    const unsigned size = (unsigned)table->size, share = (size + THREADS - 1) / THREADS;
    const unsigned first = min(threadIdx.x * share, size), end = min(first + share, size);
    const auto times = [&](unsigned i) {
        return counted ? ((const Wide*)places)[i] : ((const unsigned char*)places)[i];
    };
    unsigned mine = 0, all;
    for (unsigned i = first; i < end; ++i) mine += times(i) != 0;
    unsigned place = before_thread<THREADS>(mine, &all);
    for (unsigned i = first; i < end; ++i) {
        if (times(i) == 0) continue;
        values[place] = key_of(table->least + i);
        if (counted) counts[place] = (long long)times(i);
        ++place;
    }
    if (threadIdx.x == 0) *told = {table->least, table->size, table->lowest, table->highest, all};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    look_up(const Key* __restrict__ keys, long long n, Wide least, const long long* __restrict__ table,
            long long* __restrict__ result) {
    const long long step = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        result[i] = table[rank(keys[i]) - least];
    }
}
