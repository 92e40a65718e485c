// A tile of a min-plus product in the registers of a block. A thread keeps THREAD_ROWS x THREAD_WORDS words of the tile
// while slabs of both panels pass through shared memory. The copies of the next slabs overlap with the arithmetic.
//
//     a panel [depth][TILE_ROWS ]      rows of A, transposed
//     b panel [depth][TILE_WORDS]      columns of B
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh; THREAD_ROWS, THREAD_WORDS; THREADS, the threads of a block.
//
// B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 and 4.2.
#pragma once

#include "../device/async_copy.cuh"
#include "words.cuh"

constexpr int SIDE = 16;  // SIDE x SIDE threads compute a tile
static_assert(THREADS == SIDE * SIDE, "the macro says what the launch does");
constexpr int TILE_ROWS = SIDE * THREAD_ROWS;
constexpr int TILE_WORDS = SIDE * THREAD_WORDS;
constexpr int SLAB = 16;
constexpr int STAGES = 3;
// Before Hopper the arithmetic of int16 pairs takes many instructions, which need all registers.
constexpr int BLOCKS_PER_SM = LANES == 2 && __CUDA_ARCH__ < 900 ? 1 : 2;

// Words in one 16-byte access. A thread owns groups of GROUP neighbouring words, SIDE groups apart: eight threads that
// load neighbouring groups touch every bank of shared memory once.
constexpr int GROUP = 16 / sizeof(Word);

// All threads together copy one slab of a panel, contiguous in both memories.
template <int WIDTH>
__device__ inline void copy_slab(Word (*shared)[WIDTH], const Word* global) {
    constexpr int COPIES = SLAB * WIDTH / (THREADS * GROUP);
    static_assert(COPIES * THREADS * GROUP == SLAB * WIDTH, "every thread copies as much as the others");
#pragma unroll
    for (int c = 0; c < COPIES; ++c) {
        const int word = (c * THREADS + (int)threadIdx.x) * GROUP;
        copy_16_bytes(&shared[0][0] + word, global + word);
    }
}

// Loads one group from shared memory. `volatile` keeps the loads where the kernel has them among the additions.
__device__ inline void load_group(double* words, unsigned address) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(words[0]), "=d"(words[1]) : "r"(address));
}
template <class W>
__device__ inline void load_group(W* words, unsigned address) {
    unsigned* bits = (unsigned*)words;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(address));
}

// Loads COUNT words of a thread from one row of a slab; the first group is at `address`.
template <int COUNT>
__device__ inline void load_words(Word* words, unsigned address) {
#pragma unroll
    for (int w = 0; w < COUNT; w += GROUP) load_group(words + w, address + w * SIDE * (unsigned)sizeof(Word));
}

// A warp is 4 x 8 threads, because they read fewer different words of both slabs than 2 x 16 threads.
struct Place {
    int ty, tx;
};
__device__ inline Place place_in_tile(unsigned thread = threadIdx.x) {
    const int lane = thread % 32, warp = thread / 32;
    return {warp / 2 * 4 + lane / 8, warp % 2 * 8 + lane % 8};
}
// The position in the tile of a thread's row r and of its word w.
__device__ inline int row_in_tile(int r, int ty) {
    return r / GROUP * SIDE * GROUP + ty * GROUP + r % GROUP;
}
__device__ inline int word_in_tile(int w, int tx) {
    return w * SIDE + tx * GROUP;
}

struct Slabs {
    alignas(16) Word a[STAGES][SLAB][TILE_ROWS];
    alignas(16) Word b[STAGES][SLAB][TILE_WORDS];
};

// tile = min(tile, a (x) b), over `count` slabs of both panels, which are pointers to words or act like pointers. All threads
// of a block call it.
template <class Panel>
__device__ inline void relax_by_slabs(Word (&tile)[THREAD_ROWS][THREAD_WORDS], Panel a, Panel b, int count,
                                      Slabs& slabs, Place own) {
    auto fetch = [&](int slab) {
        if (slab < count) {
            copy_slab(slabs.a[slab % STAGES], a + (long long)slab * SLAB * TILE_ROWS);
            copy_slab(slabs.b[slab % STAGES], b + (long long)slab * SLAB * TILE_WORDS);
        }
        commit_copies();  // also if empty: the number of committed groups tells which slab has arrived
    };
    for (int slab = 0; slab < STAGES - 1; ++slab) fetch(slab);
    // Addresses of a thread's operands in shared memory.
    struct Slab {
        unsigned a, b;
    };
    const unsigned a_first = (unsigned)__cvta_generic_to_shared(&slabs.a[0][0][own.ty * GROUP]);
    const unsigned b_first = (unsigned)__cvta_generic_to_shared(&slabs.b[0][0][own.tx * GROUP]);
    auto arrive = [&](int slab) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();  // all threads have copied this slab, and no thread reads the slab before it any more
        fetch(slab + STAGES - 1);
        const unsigned stage = slab % STAGES;
        return Slab{a_first + stage * (unsigned)sizeof(slabs.a[0]), b_first + stage * (unsigned)sizeof(slabs.b[0])};
    };

    Word a0[THREAD_ROWS], a1[THREAD_ROWS], b0[THREAD_WORDS], b1[THREAD_WORDS];
    // Operands of two steps p: a for one half of the tile's rows at a time, b for all words.
    constexpr int HALF = THREAD_ROWS / 2 < GROUP ? THREAD_ROWS : THREAD_ROWS / 2;
    constexpr unsigned ROW_OF_A = sizeof(slabs.a[0][0]), ROW_OF_B = sizeof(slabs.b[0][0]);
    auto load_a = [&](int half, Slab slab, int p) {
        const unsigned rows = slab.a + half * HALF * SIDE * (unsigned)sizeof(Word);
        load_words<HALF>(a0 + half * HALF, rows + p * ROW_OF_A);
        load_words<HALF>(a1 + half * HALF, rows + (p + 1) * ROW_OF_A);
    };
    auto load_b = [&](Slab slab, int p) {
        load_words<THREAD_WORDS>(b0, slab.b + p * ROW_OF_B);
        load_words<THREAD_WORDS>(b1, slab.b + (p + 1) * ROW_OF_B);
    };
    auto relax_half = [&](int half) {
#pragma unroll
        for (int r = half * HALF; r < (half + 1) * HALF; ++r) {
#pragma unroll
            for (int w = 0; w < THREAD_WORDS; w += 2) {
                relax_pair<ARITHMETIC>(r * THREAD_WORDS + w, &tile[r][w], a0[r], &b0[w], a1[r], &b1[w]);
            }
        }
    };

    // Every register is loaded again right after its last use. The kernel waits for the next slab before the last step
    // of this slab ends, so that the first operands of the next slab are in registers in time.
    Slab slab = arrive(0), next = slab;
    load_a(0, slab, 0);
    load_b(slab, 0);
    for (int s = 0; s < count; ++s) {
#pragma unroll
        for (int p = 0; p < SLAB; p += 2) {
            const bool last = p == SLAB - 2;
            if (HALF < THREAD_ROWS) {
                load_a(1, slab, p);
                relax_half(0);
            }
            if (last) next = arrive(s + 1);
            if (HALF < THREAD_ROWS) {
                load_a(0, last ? next : slab, (p + 2) % SLAB);
                relax_half(1);
            } else {
                relax_half(0);
                load_a(0, last ? next : slab, (p + 2) % SLAB);
            }
            load_b(last ? next : slab, (p + 2) % SLAB);
        }
        slab = next;
    }
}

// tile = min(infinity, a (x) b), likewise.
__device__ inline void product_tile(Word (&tile)[THREAD_ROWS][THREAD_WORDS], const Word* a, const Word* b, int count,
                                    Slabs& slabs, Place own) {
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; ++w) tile[r][w] = ARITHMETIC::broadcast(infinity<Element>());
    }
    relax_by_slabs(tile, a, b, count, slabs, own);
}
