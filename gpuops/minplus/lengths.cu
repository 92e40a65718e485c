// Prepares and checks the lengths of arcs, d (batch, n, n) of any strides, before d is closed.
//
// Launch: see each kernel.
// Macros: ELEMENT, the type of the distances; THREADS, the threads of a block.

#include "arithmetic.cuh"

using Element = ELEMENT;

// Sets each diagonal entry d[i][i] to min(d[i][i], 0).
// Launch: blocks of THREADS threads, a thread for each vertex of all matrices.
extern "C" __global__ void clear_diagonal(Element* d, long long matrix_stride, long long step, int n,
                                          long long vertices) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (i >= vertices) return;
    Element& own = d[i / n * matrix_stride + i % n * step];
    if (own > Element(0)) own = Element(0);
}

// Sets found[0] if d contains NaN, found[1] if it contains -inf, found[2] if it contains a negative value; 0 at first.
// Launch: a block of THREADS threads for each row of all matrices, or fewer blocks.
extern "C" __global__ void look_over(const Element* d, long long matrix_stride, long long row_stride,
                                     long long column_stride, int n, long long rows, int* found) {
    for (long long i = blockIdx.x; i < rows; i += gridDim.x) {
        const Element* row = d + i / n * matrix_stride + i % n * row_stride;
        for (int j = threadIdx.x; j < n; j += THREADS) {
            const Element x = row[j * column_stride];
            if (x != x) found[0] = 1;
            if (x < Element(0)) found[2] = 1;
            if (Element(0.5) != Element(0) && x == -infinity<Element>()) found[1] = 1;  // only floats have -inf
        }
    }
}
