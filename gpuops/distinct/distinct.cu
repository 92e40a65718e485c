// Distinct values of an array: keys of floats, tables with a place for every value, and ranks read from tables.
//
//     order_floats   keys of bits: unsigned integers in the order of the numbers, one for all NaN, one for both zeros
//     sample         the least and the largest of some elements
//     flag           which values there are
//     count          how often each value occurs
//     place_first    where each value occurs first
//     look_up        a number for every element, from a table
//
// A table has a place for each of `size` values from `least` on. What lies outside only moves `extent`, the least and
// the largest of all that was seen, as numbers in unsigned order (`rank`). Tables of at most SHARED places are made in
// shared memory by every block and added up; larger ones in global memory, where a place is read before it is stored
// to, so that values that were seen cost a load from a cache.
//
// Launch: any number of blocks of THREADS threads; sample: one block.
// Macros: KEY, an integer type of 1 to 8 bytes; THREADS.

using Key = KEY;
using Wide = unsigned long long;

constexpr int ITEMS = 8;  // elements that a thread loads at a time
constexpr int SHARED_FLAGS = 32768, SHARED_COUNTS = 8192;
constexpr bool SIGNED = (Key)-1 < (Key)1;

// Unsigned integers in the order of the keys, whose differences are theirs.
__device__ inline Wide rank(Key key) {
    return (Wide)(long long)key ^ (SIGNED ? 1ull << 63 : 0);
}

struct Extent {
    Wide least = ~0ull, largest = 0;

    __device__ void add(Wide value) {
        least = min(least, value);
        largest = max(largest, value);
    }
    __device__ void store(Wide* extent) const {
        if (least > largest) return;
        atomicMin(extent, least);
        atomicMax(extent + 1, largest);
    }
};

// mark(place, i): the element i has that place in the table.
template <class Mark>
__device__ inline void for_all_places(const Key* __restrict__ keys, long long n, Wide least, Wide size, Wide* extent,
                                      Mark mark) {
    Extent outside;
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
    outside.store(extent);
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

extern "C" __global__ void __launch_bounds__(THREADS)
    sample(const Key* __restrict__ keys, long long n, long long step, Wide* extent) {
    Extent found;
#pragma unroll 1  // a few elements a thread are not worth the registers
    for (long long i = threadIdx.x * step; i < n; i += THREADS * step) found.add(rank(keys[i]));
    found.store(extent);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flag(const Key* __restrict__ keys, long long n, Wide least, Wide size, unsigned char* table, Wide* extent) {
    __shared__ unsigned char here[SHARED_FLAGS];
    if (size > SHARED_FLAGS) {
        for_all_places(keys, n, least, size, extent, [&](Wide place, long long) {
            if (!table[place]) table[place] = 1;
        });
        return;
    }
    for (unsigned i = threadIdx.x; i < size; i += THREADS) here[i] = 0;
    __syncthreads();
    for_all_places(keys, n, least, size, extent, [&](Wide place, long long) { here[place] = 1; });
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += THREADS) {
        if (here[i]) table[i] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    count(const Key* __restrict__ keys, long long n, Wide least, Wide size, Wide* table, Wide* extent) {
    __shared__ unsigned here[SHARED_COUNTS];
    if (size > SHARED_COUNTS) {
        for_all_places(keys, n, least, size, extent, [&](Wide place, long long) { atomicAdd(table + place, 1ull); });
        return;
    }
    for (unsigned i = threadIdx.x; i < size; i += THREADS) here[i] = 0;
    __syncthreads();
    for_all_places(keys, n, least, size, extent, [&](Wide place, long long) { atomicAdd(here + place, 1u); });
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += THREADS) {
        if (here[i]) atomicAdd(table + i, (Wide)here[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    place_first(const Key* __restrict__ keys, long long n, Wide least, Wide size, Wide* table, Wide* extent) {
    for_all_places(keys, n, least, size, extent, [&](Wide place, long long i) {
        if (table[place] > (Wide)i) atomicMin(table + place, (Wide)i);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    look_up(const Key* __restrict__ keys, long long n, Wide least, const long long* __restrict__ table,
            long long* __restrict__ result) {
    const long long step = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        result[i] = table[rank(keys[i]) - least];
    }
}
