// What the distances of each row add up to, over the columns that are no farther away than `limit`: a block for a row.
//
//     add       the sum of their values
//     decay     the same, each value times exp(-distance / scale)
//     nearest   the least of the distances, infinity if there is none
//
// Threads take columns by turns; their sums are added by halves of the block. So bits depend on the width alone.
//
// Launch: a block for each row, THREADS threads.
// Macros: ELEMENT, the type of the distances; THREADS, a power of two.

using Element = ELEMENT;

template <class Term, class Combine>
__device__ inline void reduce(double* out, const Element* found, int width, double nothing, Term term,
                              Combine combine) {
    __shared__ double sums[THREADS];
    found += (long long)blockIdx.x * width;
    double sum = nothing;
#pragma unroll 8
    for (int column = threadIdx.x; column < width; column += THREADS) {
        sum = combine(sum, term((double)found[column], column));
    }
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] = combine(sums[threadIdx.x], sums[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

struct Plus {
    __device__ double operator()(double x, double y) const { return x + y; }
};
struct Least {
    __device__ double operator()(double x, double y) const { return y < x ? y : x; }
};

extern "C" __global__ void add(double* out, const Element* found, int width, double limit, const double* values) {
    reduce(
        out, found, width, 0.0,
        [&](double distance, int column) {
            const double value = values[column];
            return distance <= limit ? value : 0.0;
        },
        Plus());
}

extern "C" __global__ void decay(double* out, const Element* found, int width, double limit, const double* values,
                                 double scale) {
    reduce(
        out, found, width, 0.0,
        [&](double distance, int column) {
            const double value = values[column];
            return distance <= limit ? value * exp(-distance / scale) : 0.0;
        },
        Plus());
}

extern "C" __global__ void nearest(double* out, const Element* found, int width, double limit) {
    const double infinity = __longlong_as_double(0x7ff0000000000000LL);
    reduce(
        out, found, width, infinity, [&](double distance, int) { return distance <= limit ? distance : infinity; },
        Least());
}
