// C = min(C, A (x) B), the min-plus product of dense matrices, C (m, n), A (m, p), B (p, n).
//
//     pack_a, pack_b   copy A, transposed, and B into panels as wide as a tile of C, filled up with infinity
//     relax            computes a tile of the product in each block: a thread keeps THREAD_TILE x THREAD_TILE words in
//                      registers while slabs of both panels pass through shared memory, the next ones on their way
//                      while one is used
//
//     a_panels [m / TILE_ROWS ][depth][TILE_ROWS ]      depth: p rounded up to whole slabs
//     b_panels [n / TILE_WORDS][depth][TILE_WORDS]
//
// Launch: said at each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; THREAD_TILE; THREADS, of a block of `relax`.
//
// B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 and 4.2.

#include "../device/async_copy.cuh"
#include "arithmetic.cuh"

using Element = ARITHMETIC::Element;
using Word = ARITHMETIC::Word;
constexpr int LANES = ARITHMETIC::LANES;

constexpr int SIDE = 16;  // a tile is shared by SIDE x SIDE threads
static_assert(THREADS == SIDE * SIDE, "the macro says what the launch does");
constexpr int TILE_ROWS = SIDE * THREAD_TILE;
constexpr int TILE_WORDS = SIDE * THREAD_TILE;
constexpr int SLAB = 16;
constexpr int STAGES = 3;
// Before Hopper the arithmetic of int16 pairs is many instructions, which want all the registers there are.
constexpr int BLOCKS_PER_SM = LANES == 2 && __CUDA_ARCH__ < 900 ? 1 : 2;
constexpr int PACK = 32;  // packing goes by squares of PACK x PACK words, 32 x 8 threads each

// Words that move in one 16-byte access. A thread owns groups of so many neighbours, SIDE groups apart: then eight
// threads that load side by side touch every bank of shared memory once.
constexpr int GROUP = 16 / sizeof(Word);

// Launch: grid (m rounded up to TILE_ROWS / PACK, depth / PACK rounded up), 32 x 8 threads.
extern "C" __global__ void pack_a(Word* panels, const Element* a, long long row_stride, long long column_stride,
                                  long long m, long long p, long long depth) {
    __shared__ Word square[PACK][PACK + 1];  // one column more, so that neither way of access meets one bank only
    const long long i0 = (long long)blockIdx.x * PACK, p0 = (long long)blockIdx.y * PACK;
    for (int r = threadIdx.y; r < PACK; r += 8) {
        const long long i = i0 + r, k = p0 + threadIdx.x;
        const bool inside = i < m && k < p;
        square[r][threadIdx.x] =
            ARITHMETIC::broadcast(inside ? a[i * row_stride + k * column_stride] : infinity<Element>());
    }
    __syncthreads();
    const long long i = i0 + threadIdx.x;
    for (int r = threadIdx.y; r < PACK; r += 8) {
        const long long k = p0 + r;
        if (k < depth) {
            panels[(i / TILE_ROWS * depth + k) * TILE_ROWS + i % TILE_ROWS] = square[threadIdx.x][r];
        }
    }
}

// Launch: grid (words of a row rounded up to TILE_WORDS / PACK, depth / PACK rounded up), 32 x 8 threads.
extern "C" __global__ void pack_b(Word* panels, const Element* b, long long row_stride, long long column_stride,
                                  long long n, long long p, long long depth) {
    const long long word = (long long)blockIdx.x * PACK + threadIdx.x, p0 = (long long)blockIdx.y * PACK;
    for (int r = threadIdx.y; r < PACK; r += 8) {
        const long long k = p0 + r;
        Element x[LANES];
        for (int lane = 0; lane < LANES; ++lane) {
            const long long j = word * LANES + lane;
            const bool inside = j < n && k < p;
            x[lane] = inside ? b[k * row_stride + j * column_stride] : infinity<Element>();
        }
        if (k < depth) {
            panels[(word / TILE_WORDS * depth + k) * TILE_WORDS + word % TILE_WORDS] = ARITHMETIC::pack(x);
        }
    }
}

// All threads together: one slab of a panel, contiguous in both memories.
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

// One group from shared memory. `volatile` keeps the order of the loads among the additions as the kernel wrote it.
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

// A thread's share of one row of a slab, or of a part of it, whose first group is at `address`.
template <int COUNT>
__device__ inline void load_words(Word* words, unsigned address) {
#pragma unroll
    for (int w = 0; w < COUNT; w += GROUP) load_group(words + w, address + w * SIDE * (unsigned)sizeof(Word));
}

struct alignas(16) Group {
    Element elements[GROUP * LANES];
};

// c = min(c, words) for a thread's group in one row of C, of which `inside` elements exist: in one access if it is
// whole and aligned. C is a candidate like the others, C + 0.
__device__ inline void relax_group(Element* c, Word* words, int inside) {
    const bool one_access = inside == GROUP * LANES && (unsigned long long)c % sizeof(Group) == 0;
    Group group;
    if (one_access) {
        group = *(const Group*)c;
    } else {
#pragma unroll
        for (int e = 0; e < GROUP * LANES; ++e) group.elements[e] = e < inside ? c[e] : infinity<Element>();
    }
#pragma unroll
    for (int w = 0; w < GROUP; ++w) {
        const Word known = ARITHMETIC::pack(group.elements + w * LANES);
        ARITHMETIC::relax(0, words[w], known, Word(0), known, Word(0));
        ARITHMETIC::unpack(group.elements + w * LANES, words[w]);
    }
    if (one_access) {
        *(Group*)c = group;
    } else {
#pragma unroll
        for (int e = 0; e < GROUP * LANES; ++e) {
            if (e < inside) c[e] = group.elements[e];
        }
    }
}

// Launch: one block of THREADS threads per tile of C.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    relax(Element* c, long long stride, long long m, long long n, const Word* a_panels, const Word* b_panels,
          long long depth) {
    __shared__ alignas(16) Word a_slabs[STAGES][SLAB][TILE_ROWS];
    __shared__ alignas(16) Word b_slabs[STAGES][SLAB][TILE_WORDS];

    // Blocks that run at the same time should share panels in the L2 cache: count tiles down bands of 16 rows.
    constexpr unsigned BAND = 16;
    const unsigned down = (unsigned)((m + TILE_ROWS - 1) / TILE_ROWS);
    const unsigned across = gridDim.x / down;
    const unsigned first_row = blockIdx.x / (BAND * across) * BAND;
    const unsigned rows_in_band = min(BAND, down - first_row);
    const unsigned in_band = blockIdx.x % (BAND * across);
    const unsigned tile_i = first_row + in_band % rows_in_band, tile_j = in_band / rows_in_band;

    // A warp is 4 x 8 threads, which read fewer different words of both slabs than 2 x 16.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int ty = warp / 2 * 4 + lane / 8, tx = warp % 2 * 8 + lane % 8;

    const Word* a = a_panels + tile_i * depth * TILE_ROWS;
    const Word* b = b_panels + tile_j * depth * TILE_WORDS;
    const int slabs = (int)(depth / SLAB);
    auto fetch = [&](int slab) {
        if (slab < slabs) {
            copy_slab(a_slabs[slab % STAGES], a + (long long)slab * SLAB * TILE_ROWS);
            copy_slab(b_slabs[slab % STAGES], b + (long long)slab * SLAB * TILE_WORDS);
        }
        commit_copies();  // also if empty: the count of groups tells which slab has arrived
    };
    for (int slab = 0; slab < STAGES - 1; ++slab) fetch(slab);
    // Where a thread finds its operands in shared memory.
    struct Slab {
        unsigned a, b;
    };
    const unsigned a_first = (unsigned)__cvta_generic_to_shared(&a_slabs[0][0][ty * GROUP]);
    const unsigned b_first = (unsigned)__cvta_generic_to_shared(&b_slabs[0][0][tx * GROUP]);
    auto arrive = [&](int slab) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();  // this slab is here for all threads, and nobody reads the one before any more
        fetch(slab + STAGES - 1);
        const unsigned stage = slab % STAGES;
        return Slab{a_first + stage * (unsigned)sizeof(a_slabs[0]), b_first + stage * (unsigned)sizeof(b_slabs[0])};
    };

    Word tile[THREAD_TILE][THREAD_TILE], a0[THREAD_TILE], a1[THREAD_TILE], b0[THREAD_TILE], b1[THREAD_TILE];
#pragma unroll
    for (int r = 0; r < THREAD_TILE; ++r) {
#pragma unroll
        for (int w = 0; w < THREAD_TILE; ++w) tile[r][w] = ARITHMETIC::broadcast(infinity<Element>());
    }
    // Operands of two steps p: a by halves of the tile's rows, b whole.
    constexpr int HALF = THREAD_TILE / 2 < GROUP ? THREAD_TILE : THREAD_TILE / 2;
    constexpr unsigned ROW_OF_A = sizeof(a_slabs[0][0]), ROW_OF_B = sizeof(b_slabs[0][0]);
    auto load_a = [&](int half, Slab slab, int p) {
        const unsigned rows = slab.a + half * HALF * SIDE * (unsigned)sizeof(Word);
        load_words<HALF>(a0 + half * HALF, rows + p * ROW_OF_A);
        load_words<HALF>(a1 + half * HALF, rows + (p + 1) * ROW_OF_A);
    };
    auto load_b = [&](Slab slab, int p) {
        load_words<THREAD_TILE>(b0, slab.b + p * ROW_OF_B);
        load_words<THREAD_TILE>(b1, slab.b + (p + 1) * ROW_OF_B);
    };
    auto relax_half = [&](int half) {
#pragma unroll
        for (int r = half * HALF; r < (half + 1) * HALF; ++r) {
#pragma unroll
            for (int w = 0; w < THREAD_TILE; w += 2) {
                relax_pair<ARITHMETIC>(r * THREAD_TILE + w, &tile[r][w], a0[r], &b0[w], a1[r], &b1[w]);
            }
        }
    };

    // Every register is loaded anew as soon as it was used last. The next slab is waited for before the last step of
    // this one ends, so that nobody waits for its first operands.
    Slab slab = arrive(0), next = slab;
    load_a(0, slab, 0);
    load_b(slab, 0);
    for (int s = 0; s < slabs; ++s) {
#pragma unroll
        for (int p = 0; p < SLAB; p += 2) {
            const bool last = p == SLAB - 2;
            if (HALF < THREAD_TILE) {
                load_a(1, slab, p);
                relax_half(0);
            }
            if (last) next = arrive(s + 1);
            if (HALF < THREAD_TILE) {
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

    // C comes in only here: its addresses would cost the loop above its registers.
#pragma unroll
    for (int r = 0; r < THREAD_TILE; ++r) {
        const long long i = (long long)tile_i * TILE_ROWS + r / GROUP * SIDE * GROUP + ty * GROUP + r % GROUP;
#pragma unroll
        for (int w = 0; w < THREAD_TILE; w += GROUP) {
            const long long j = ((long long)tile_j * TILE_WORDS + w * SIDE + tx * GROUP) * LANES;
            const int inside = i < m && j < n ? (int)min(n - j, (long long)GROUP * LANES) : 0;
            relax_group(c + i * stride + j, &tile[r][w], inside);
        }
    }
}
