// The sum of the numbers of all tiles before a tile, computed in the launch that computes the numbers: decoupled
// look-back.
//
// Every tile stores its own number in memory. Then it goes back over the tiles before it and adds up their numbers,
// until it meets a tile that has stored the sum up to itself. The first block to start takes the first tile, and so on:
// a tile never waits for a tile without a block.
//
// Numbers are stored by atomicExch. With plain stores, which become visible later, compaction takes 1.4 times as long
// (H100).
//
// `states` has one word for each tile with Count, two with Halves, and one or two more in front: its first word is the
// number of tiles that blocks have taken. All words are zero before the launch.
//
// D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
#pragma once

// The mark of a stored number: OWN, the tile's number; ALL, the sum up to and including the tile. 0: not stored yet.
constexpr unsigned OWN = 1, ALL = 2;

// Called once by all threads of a block. Returns the tile that the block takes.
__device__ inline long long next_tile(unsigned long long* states) {
    __shared__ unsigned long long tile;
    if (threadIdx.x == 0) tile = atomicAdd(states, 1ull);
    __syncthreads();
    return (long long)tile;
}

// A number below 2^62 and its mark, in one word.
struct Count {
    using Number = unsigned long long;
    unsigned long long word;

    __device__ unsigned whose() const { return (unsigned)(word >> 62); }
    __device__ Number number() const { return word & ~(3ull << 62); }
    // The load is volatile because ptxas removes the waiting loop if it uses __ldcg (CUDA 13).
    __device__ void load(const unsigned long long* states, long long tile) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(states + 1 + tile) : "memory");
    }
    __device__ static void store(unsigned long long* states, long long tile, unsigned whose, Number number) {
        atomicExch(states + 1 + tile, (unsigned long long)whose << 62 | number);
    }
};

// A sum of 4 or 8 bytes in two words. Each word has half of the bits and the mark, because another tile may load the
// two words before and after they change.
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

// Called by the first warp of a block, all lanes with the same `mine`, the number of the tile. Returns the sum of the
// numbers of the tiles before it.
template <class State>
__device__ inline typename State::Number before_tile(unsigned long long* states, long long tile,
                                                     typename State::Number mine) {
    const int lane = threadIdx.x % 32;
    if (lane == 0 && tile > 0) State::store(states, tile, OWN, mine);
    typename State::Number before = 0;
    for (long long nearest = tile - 1; nearest >= 0; nearest -= 32) {
        const long long other = nearest - lane;  // below 0: the sum up to there is known, 0
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

// Called by all threads of a block of SIZE threads, at most 1,024 and a multiple of 32; the lanes of a warp pass the
// same `mine`. Returns the sum of `mine` over the warps before this one, and stores the sum over all warps in `all`.
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

// Returns the sum of `value` over the lanes up to and including this one.
template <class T>
__device__ inline T up_to_lane(T value) {
    for (int b = 1; b < 32; b *= 2) {
        const T other = __shfl_up_sync(0xffffffffu, value, b);
        if (threadIdx.x % 32 >= b) value += other;
    }
    return value;
}

// Called by all threads of a block of SIZE threads. Returns the sum of `mine` over the threads before this one, and
// stores the sum over all threads in `all`.
template <int SIZE>
__device__ inline unsigned before_thread(unsigned mine, unsigned* all) {
    const unsigned up_to_here = up_to_lane(mine);
    return before_warp<SIZE>(__shfl_sync(0xffffffffu, up_to_here, 31), all) + up_to_here - mine;
}
