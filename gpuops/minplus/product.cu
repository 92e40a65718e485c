// C = min(C, A (x) B), the min-plus product of dense matrices, C (m, n), A (m, p), B (p, n). Without READS_C it is
// min(infinity, A (x) B), which moves half as much memory if the depth p is small.
//
//     pack_a, pack_b   copy A, transposed, or B into panels as wide as a tile of C, padded with infinity
//     pack_both        copies both
//     relax            computes a tile of the product in each block (product_tile.cuh)
//
//     a_panels [m / TILE_ROWS ][depth][TILE_ROWS ]      depth: p rounded up to whole slabs
//     b_panels [n / TILE_WORDS][depth][TILE_WORDS]
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; THREAD_ROWS, THREAD_WORDS; READS_C; THREADS, the threads of a block of `relax`.
//
// B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 and 4.2.

#include "packing.cuh"
#include "product_tile.cuh"

__device__ inline int in_order(int word) {
    return word;
}

// Launch: see packing.cuh.
extern "C" __global__ void pack_a(Word* panels, const Element* a, long long row_stride, long long column_stride,
                                  long long m, long long p, long long depth) {
    pack_rows<TILE_ROWS>(blockIdx.x, panels, a, row_stride, column_stride, m, p, depth);
}

// Launch: see packing.cuh.
extern "C" __global__ void pack_b(Word* panels, const Element* b, long long row_stride, long long column_stride,
                                  long long n, long long p, long long depth) {
    pack_columns<TILE_WORDS>(blockIdx.x, panels, b, row_stride, column_stride, n, p, depth, in_order);
}

// Launch: a grid as wide as the grids of `pack_a` and `pack_b` together, 32 x 8 threads. The panels of B follow the
// panels of A.
extern "C" __global__ void pack_both(Word* panels, const Element* a, long long a_row_stride, long long a_column_stride,
                                     long long m, const Element* b, long long b_row_stride, long long b_column_stride,
                                     long long n, long long p, long long depth) {
    const long long down = (m + TILE_ROWS - 1) / TILE_ROWS, first = down * (TILE_ROWS / PACK);
    if (blockIdx.x < first) {
        pack_rows<TILE_ROWS>(blockIdx.x, panels, a, a_row_stride, a_column_stride, m, p, depth);
    } else {
        pack_columns<TILE_WORDS>(blockIdx.x - first, panels + down * depth * TILE_ROWS, b, b_row_stride,
                                 b_column_stride, n, p, depth, in_order);
    }
}

struct alignas(16) Group {
    Element elements[GROUP * LANES];
};

struct alignas(16) Words {
    Word words[GROUP];
};

// c = min(c, words), or c = words without READS_C, for a thread's group in one row of C. `inside` elements of the group
// exist; a whole, aligned group takes one access. C enters as one more candidate, C + 0.
__device__ inline void relax_group(Element* c, Word* words, int inside) {
    const bool one_access = inside == GROUP * LANES && (unsigned long long)c % sizeof(Group) == 0;
    Group group;
    if (READS_C) {
        if (one_access) {
            group = *(const Group*)c;
        } else {
#pragma unroll
            for (int e = 0; e < GROUP * LANES; ++e) group.elements[e] = e < inside ? c[e] : infinity<Element>();
        }
    }
#pragma unroll
    for (int w = 0; w < GROUP; ++w) {
        if (READS_C) {
            const Word known = ARITHMETIC::pack(group.elements + w * LANES);
            ARITHMETIC::relax(0, words[w], known, Word(0), known, Word(0));
        }
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

// Launch: one block of THREADS threads per tile of C. If `b_panels` is null, the panels of B follow the panels of A.
// `packed`, if not null, receives the result in panels, for products that use it as B. The tiles of C from column `kept` to
// `kept_end`, counted in tiles, stay as they are.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    relax(Element* c, long long stride, long long m, long long n, const Word* a_panels, const Word* b_panels,
          long long depth, Word* packed, unsigned kept, unsigned kept_end) {
    __shared__ Slabs slabs;

    // Blocks that run at the same time should share panels in the L2 cache: number the tiles down bands of 16 rows.
    constexpr unsigned BAND = 16;
    const unsigned down = (unsigned)((m + TILE_ROWS - 1) / TILE_ROWS);
    const unsigned across = gridDim.x / down;
    const unsigned first_row = blockIdx.x / (BAND * across) * BAND;
    const unsigned rows_in_band = min(BAND, down - first_row);
    const unsigned in_band = blockIdx.x % (BAND * across);
    const unsigned tile_i = first_row + in_band % rows_in_band, tile_j = in_band / rows_in_band;

    const Place own = place_in_tile();
    Word tile[THREAD_ROWS][THREAD_WORDS];
    if (!b_panels) b_panels = a_panels + down * depth * TILE_ROWS;
    product_tile(tile, a_panels + tile_i * depth * TILE_ROWS, b_panels + tile_j * depth * TILE_WORDS,
                 tile_j >= kept && tile_j < kept_end ? 0 : (int)(depth / SLAB), slabs, own);

    // C is read only here: its addresses would take registers that the loop above needs.
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
        const long long i = (long long)tile_i * TILE_ROWS + row_in_tile(r, own.ty);
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; w += GROUP) {
            const long long j = ((long long)tile_j * TILE_WORDS + word_in_tile(w, own.tx)) * LANES;
            const int inside = i < m && j < n ? (int)min(n - j, (long long)GROUP * LANES) : 0;
            relax_group(c + i * stride + j, &tile[r][w], inside);
        }
    }
    if (!packed) return;
    const long long packed_depth = (m + SLAB - 1) / SLAB * SLAB;
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
        const long long i = (long long)tile_i * TILE_ROWS + row_in_tile(r, own.ty);
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; w += GROUP) {
            Words words;
#pragma unroll
            for (int g = 0; g < GROUP; ++g) words.words[g] = tile[r][w + g];
            if (i < packed_depth) {
                *(Words*)(packed + (tile_j * packed_depth + i) * TILE_WORDS + word_in_tile(w, own.tx)) = words;
            }
        }
    }
}
