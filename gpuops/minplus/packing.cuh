// Copies operands into panels, transposed or not, padded with infinity. A block copies a square of PACK x PACK words.
//
// Launch, where `block` is blockIdx.x: grid (length rounded up to whole panels / PACK, depth / PACK rounded up), 32 x 8
// threads.
#pragma once

#include "words.cuh"

constexpr int PACK = 32;

// panels [m / WIDTH][depth][WIDTH]: rows of a (m, p), each element in all lanes of a word.
template <int WIDTH>
__device__ inline void pack_rows(long long block, Word* panels, const Element* a, long long row_stride,
                                 long long column_stride, long long m, long long p, long long depth) {
    __shared__ Word square[PACK][PACK + 1];  // one column more, so that rows and columns each spread over all banks
    const long long i0 = block * PACK, p0 = (long long)blockIdx.y * PACK;
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
        if (k < depth) panels[(i / WIDTH * depth + k) * WIDTH + i % WIDTH] = square[threadIdx.x][r];
    }
}

// panels [n / WIDTH][depth][WIDTH]: words of b (p, n); place(u) is the index of word u within a row of a panel.
template <int WIDTH, class Place>
__device__ inline void pack_columns(long long block, Word* panels, const Element* b, long long row_stride,
                                    long long column_stride, long long n, long long p, long long depth, Place place) {
    const long long word = block * PACK + threadIdx.x, p0 = (long long)blockIdx.y * PACK;
    for (int r = threadIdx.y; r < PACK; r += 8) {
        const long long k = p0 + r;
        Element x[LANES];
        for (int lane = 0; lane < LANES; ++lane) {
            const long long j = word * LANES + lane;
            const bool inside = j < n && k < p;
            x[lane] = inside ? b[k * row_stride + j * column_stride] : infinity<Element>();
        }
        if (k < depth) panels[(word / WIDTH * depth + k) * WIDTH + place((int)(word % WIDTH))] = ARITHMETIC::pack(x);
    }
}
