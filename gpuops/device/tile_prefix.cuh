// What the tiles before a tile have together, in the launch that counts them: decoupled look-back.
//
// Every tile leaves its own number in memory, and adds up those before it until it comes to one that knows all before
// itself. Blocks take tiles in the order in which they start, so that a tile never waits for one that has no block yet.
//
// Numbers are left by an exchange: a store comes too late, and compaction then takes 1.4 times as long (H100).
//
// `states` has one word in front, which deals out the tiles, and those of each tile; all are zero before the launch.
//
// D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
#pragma once

constexpr unsigned OWN = 1, ALL = 2;  // whose number a tile left: its own, that of all up to it; 0: none yet

// Called once by all threads of a block: the tile that it has.
__device__ inline long long next_tile(unsigned long long* states) {
    __shared__ unsigned long long tile;
    if (threadIdx.x == 0) tile = atomicAdd(states, 1ull);
    __syncthreads();
    return (long long)tile;
}

// A number below 2^62 and whose it is, in one word.
struct Count {
    using Number = unsigned long long;
    unsigned long long word;

    __device__ unsigned whose() const { return (unsigned)(word >> 62); }
    __device__ Number number() const { return word & ~(3ull << 62); }
    // The load is volatile: with __ldcg, ptxas removes the loop that waits (CUDA 13).
    __device__ void load(const unsigned long long* states, long long tile) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(states + 1 + tile) : "memory");
    }
    __device__ static void store(unsigned long long* states, long long tile, unsigned whose, Number number) {
        atomicExch(states + 1 + tile, (unsigned long long)whose << 62 | number);
    }
};

// A sum of 4 or 8 bytes. Each of two words has half of it and says whose it is: two loads need not be of one moment.
template <class Sum>
struct Halves {
    using Number = Sum;
    unsigned long long low, high;

    __device__ unsigned whose() const { return low >> 62 == high >> 62 ? (unsigned)(low >> 62) : 0; }
    __device__ Number number() const {
        const unsigned long long bits = high << 32 | (low & 0xffffffff);
        Sum sum;
        memcpy(&sum, &bits, sizeof sum);
        return sum;
    }
    __device__ void load(const unsigned long long* states, long long tile) {
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(low), "=l"(high)
                     : "l"(states + 2 + 2 * tile)
                     : "memory");
    }
    __device__ static void store(unsigned long long* states, long long tile, unsigned whose, Number number) {
        unsigned long long bits = 0;
        memcpy(&bits, &number, sizeof number);
        const unsigned long long mark = (unsigned long long)whose << 62;
        atomicExch(states + 2 + 2 * tile, mark | (bits & 0xffffffff));
        atomicExch(states + 3 + 2 * tile, mark | bits >> 32);
    }
};

template <class T>
__device__ inline T sum_of_lanes(T value) {
    for (int b = 16; b > 0; b /= 2) value += __shfl_xor_sync(0xffffffffu, value, b);
    return value;
}

// Called by the first warp of a block, whose lanes give the same `mine`: the sum of the tiles before.
template <class State>
__device__ inline typename State::Number before_tile(unsigned long long* states, long long tile,
                                                     typename State::Number mine) {
    const int lane = threadIdx.x % 32;
    if (lane == 0 && tile > 0) State::store(states, tile, OWN, mine);
    typename State::Number before = 0;
    for (long long nearest = tile - 1; nearest >= 0; nearest -= 32) {
        const long long other = nearest - lane;  // in front of all tiles there is known to be nothing
        State state;
        unsigned whose = ALL;
        if (other >= 0) {
            do {
                state.load(states, other);
            } while ((whose = state.whose()) == 0);
        }
        const unsigned known = __ballot_sync(0xffffffffu, whose == ALL);
        const int last = known ? __ffs((int)known) - 1 : 31;
        if (other >= 0 && lane <= last) before += state.number();
        if (known) break;
    }
    before = sum_of_lanes(before);
    if (lane == 0) State::store(states, tile, ALL, before + mine);
    return before;
}

// Called by all threads of a block of SIZE, at most 1,024 and a multiple of 32: the sum of `mine` of the warps before
// this one, and in `all` that of the block. The lanes of a warp give the same.
template <int SIZE, class T>
__device__ inline T before_warp(T mine, T* all) {
    __shared__ T of_warps[SIZE / 32];
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    T before = 0, total = 0;
    for (int w = 0; w < SIZE / 32; ++w) {
        if (w < threadIdx.x / 32) before += of_warps[w];
        total += of_warps[w];
    }
    *all = total;
    return before;
}

// The sum of `value` of the lanes up to this one.
template <class T>
__device__ inline T up_to_lane(T value) {
    for (int b = 1; b < 32; b *= 2) {
        const T other = __shfl_up_sync(0xffffffffu, value, b);
        if (threadIdx.x % 32 >= b) value += other;
    }
    return value;
}

// The same for threads, of which each gives its own: the sum of `mine` of the threads before this one.
template <int SIZE>
__device__ inline unsigned before_thread(unsigned mine, unsigned* all) {
    const unsigned up_to_here = up_to_lane(mine);
    return before_warp<SIZE>(__shfl_sync(0xffffffffu, up_to_here, 31), all) + up_to_here - mine;
}
