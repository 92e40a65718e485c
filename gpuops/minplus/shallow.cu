// C = min(infinity, A (x) B), the min-plus product of dense matrices of small depth, C (m, n), A (m, p), B (p, n). Its
// time goes into writing C.
//
//     pack_a, pack_b   copy A, transposed, and B into panels, padded with infinity
//     multiply         computes a strip of some rows of the product in each block (strip.cuh)
//
//     a_panels [m / ROWS, rounded up][depth][ROWS]      depth: p rounded up to an even number
//     b_panels [n / STRIP words, rounded up][depth][STRIP]
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS, the threads of a block of `multiply`;
//         BLOCKS, the blocks on a multiprocessor.

#include "packing.cuh"
#include "strip.cuh"

// Neighbouring threads own neighbouring words, so that the threads store to different banks of shared memory.
__device__ inline int word_of_thread(int w) {
    return w * THREADS + (int)threadIdx.x;
}
__device__ inline int slot_of_word(int word) {
    return word % THREADS * WORDS + word / THREADS;
}

// Launch of both: see packing.cuh.
extern "C" __global__ void pack_a(Word* panels, const Element* a, long long row_stride, long long column_stride,
                                  long long m, long long p, long long depth) {
    pack_rows<ROWS>(blockIdx.x, panels, a, row_stride, column_stride, m, p, depth);
}
extern "C" __global__ void pack_b(Word* panels, const Element* b, long long row_stride, long long column_stride,
                                  long long n, long long p, long long depth) {
    pack_columns<STRIP>(blockIdx.x, panels, b, row_stride, column_stride, n, p, depth, slot_of_word);
}

// Launch: grid (strips, m / (turns ROWS) rounded up), THREADS threads: a block computes `turns` times ROWS rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    multiply(Element* c, long long stride, long long m, long long n, const Word* a_panels, const Word* b_panels,
             int depth, int turns) {
    __shared__ Exchange exchange;
    const long long first_column = (long long)blockIdx.x * STRIP * LANES;
    const int width = (int)min(n - first_column, (long long)STRIP * LANES);
    int columns[COLUMNS];
#pragma unroll
    for (int x = 0; x < COLUMNS; ++x) columns[x] = word_of_thread(x / LANES) * LANES + x % LANES;
    const Word* b = b_panels + (long long)blockIdx.x * depth * STRIP + threadIdx.x * WORDS;
    c += first_column;
    for (int turn = 0; turn < turns; ++turn) {
        const long long first = ((long long)blockIdx.y * turns + turn) * ROWS;
        if (first >= m) break;
        Tile tile;
        multiply_strip(tile, a_panels + first * depth, b, depth);
        store_strip(tile, exchange, columns, width,
                    [&](int r) { return first + r < m ? c + (first + r) * stride : nullptr; });
    }
}
