// Strips of min-plus products of small depth, whose time goes into writing C. A block computes ROWS rows of up to STRIP
// words each, a thread ROWS x WORDS words. Operands come straight from the first-level cache, where a strip of B stays
// for many rows. Results go through shared memory, so that a row of a strip is stored in one piece, whatever the order
// of its columns.
//
//     a panel [depth][ROWS ]      rows of A, transposed
//     b panel [depth][STRIP]      columns of B; the columns of a thread lie side by side
//
// depth is even, or the panels have one more row.
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS, the threads of a block; BLOCKS, the blocks on a
//         multiprocessor.
#pragma once

#include "words.cuh"

constexpr int WORDS = 4;                // words of a thread in a row
constexpr int COLUMNS = WORDS * LANES;  // elements of a thread in a row
constexpr int STRIP = THREADS * WORDS;
constexpr int GROUP = 16 / sizeof(Word);
// On other architectures than Hopper the arithmetic of int16 pairs needs more registers.
constexpr int BLOCKS_PER_SM = LANES == 2 && __CUDA_ARCH__ != 900 ? 1 : BLOCKS;

using Tile = Word[ROWS][WORDS];

struct alignas(16) Access {
    Word words[GROUP];
};

template <int COUNT>
__device__ inline void load_words(Word* words, const Word* from) {
    static_assert(COUNT % GROUP == 0, "whole accesses");
#pragma unroll
    for (int w = 0; w < COUNT; w += GROUP) {
        const Access access = *(const Access*)(from + w);
#pragma unroll
        for (int g = 0; g < GROUP; ++g) words[w + g] = access.words[g];
    }
}

// tile = min(infinity, a (x) b), where b points to the first of the thread's own words.
__device__ inline void multiply_strip(Tile& tile, const Word* a, const Word* b, int depth) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) tile[r][w] = ARITHMETIC::broadcast(infinity<Element>());
    }
    constexpr int PART = ROWS < 8 ? ROWS : 8;  // rows whose operands are in registers at a time
#pragma unroll 1
    for (int p = 0; p < depth; p += 2) {
        Word b0[WORDS], b1[WORDS];
        load_words<WORDS>(b0, b);
        load_words<WORDS>(b1, b + STRIP);
#pragma unroll
        for (int part = 0; part < ROWS; part += PART) {
            Word a0[PART], a1[PART];
            load_words<PART>(a0, a + part);
            load_words<PART>(a1, a + ROWS + part);
#pragma unroll
            for (int r = 0; r < PART; ++r) {
#pragma unroll
                for (int w = 0; w < WORDS; w += 2) {
                    const int word = (part + r) * WORDS + w;
                    relax_pair<ARITHMETIC>(word, &tile[part + r][w], a0[r], &b0[w], a1[r], &b1[w]);
                }
            }
        }
        a += 2 * ROWS;
        b += 2 * STRIP;
    }
}

// EXCHANGED rows are stored at a time, through two buffers in turn. A row has the same offset from a multiple of 16
// bytes in its buffer as in C.
constexpr int EXCHANGED = 4;
constexpr int ALIGNED = 16 / sizeof(Element);
static_assert(ROWS % (2 * EXCHANGED) == 0, "a tile begins with the first buffer");

// All lanes of a warp store `count` elements of a row. `from` and `to` have the same offset from a multiple of 16
// bytes. The stores are streaming stores, because C is not read again soon.
__device__ inline void store_row(Element* to, const Element* from, int count) {
    const int lane = threadIdx.x % 32, behind = (int)((unsigned long long)to / sizeof(Element) % ALIGNED);
    const int first = min(count, (ALIGNED - behind) % ALIGNED), last = first + (count - first) / ALIGNED * ALIGNED;
    for (int e = first + lane * ALIGNED; e < last; e += 32 * ALIGNED) {
        __stcs((int4*)(to + e), *(const int4*)(from + e));
    }
    // The elements before the first and after the last whole 16 bytes.
    if (lane < first) to[lane] = from[lane];
    if (last + lane < count) to[last + lane] = from[last + lane];
}

struct Exchange {
    alignas(16) Element rows[2][EXCHANGED][STRIP * LANES + ALIGNED];
};

// Stores columns 0 to `width` of the strip. columns[0], ... are the columns of the thread; all threads together have
// each column up to STRIP * LANES once. row(r) points to the first column in row r of C, or is null. What is stored of an
// element x is last(x).
template <class Row, class Last>
__device__ inline void store_strip(Tile& tile, Exchange& exchange, const int (&columns)[COLUMNS], int width, Row row,
                                   Last last) {
    const auto behind = [&](int r) { return (int)((unsigned long long)row(r) / sizeof(Element) % ALIGNED); };
#pragma unroll
    for (int first = 0; first < ROWS; first += EXCHANGED) {
        auto& rows = exchange.rows[first / EXCHANGED % 2];
#pragma unroll
        for (int r = 0; r < EXCHANGED; ++r) {
            Element* to = rows[r] + behind(first + r);
            Element x[COLUMNS];
#pragma unroll
            for (int w = 0; w < WORDS; ++w) ARITHMETIC::unpack(x + w * LANES, tile[first + r][w]);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) to[columns[c]] = last(x[c]);
        }
        // After the barrier these rows are complete, and the other buffer is free again.
        __syncthreads();
        for (int r = threadIdx.x / 32; r < EXCHANGED; r += THREADS / 32) {
            Element* to = row(first + r);
            if (to) store_row(to, rows[r] + behind(first + r), width);
        }
    }
}

template <class Row>
__device__ inline void store_strip(Tile& tile, Exchange& exchange, const int (&columns)[COLUMNS], int width, Row row) {
    store_strip(tile, exchange, columns, width, row, [](Element x) { return x; });
}
