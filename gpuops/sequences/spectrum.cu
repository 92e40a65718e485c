// Cyclic spectra: the sums of all pieces of a ring, from the prefix sums of two turns.
//
//     sums     0, then prefix[i + k] - prefix[i] for every length k, 1 to n - 1, and every beginning i, then the total
//     counts   how often each sum of a piece occurs: pieces of up to half of the ring are counted, and with each piece
//              shorter than half of the ring, the rest of the ring
//     expand   each number as often as it is counted; one block for each tile of the result, whose numbers it finds by
//              binary search
//
// A block of `sums` and `counts` has THREADS beginnings and LENGTHS lengths, so that each prefix that it loads serves
// many sums.
//
// Launch: sums and counts: ceil(n / THREADS) x ceil(lengths / LENGTHS) blocks; expand: a block for TILE results.
// Macros: THREADS.

using Sum = long long;

constexpr int LENGTHS = 32, TILE = 16 * THREADS;

extern "C" __global__ void __launch_bounds__(THREADS)
    sums(const Sum* __restrict__ prefix, long long n, Sum* __restrict__ result) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    const long long first = 1 + (long long)blockIdx.y * LENGTHS, last = min(first + LENGTHS, n);
    if (blockIdx.y == 0 && i == 0) {
        result[0] = 0;
        result[n * (n - 1) + 1] = prefix[n];
    }
    if (i >= n) return;
    const Sum begin = prefix[i];
    for (long long length = first; length < last; ++length) {
        result[1 + (length - 1) * n + i] = prefix[i + length] - begin;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    counts(const Sum* __restrict__ prefix, long long n, unsigned long long* table) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x, total = prefix[n];
    const long long first = 1 + (long long)blockIdx.y * LENGTHS, last = min(first + LENGTHS, n / 2 + 1);
    if (i >= n) return;
    const Sum begin = prefix[i];
    for (long long length = first; length < last; ++length) {
        const Sum sum = prefix[i + length] - begin;
        atomicAdd(table + sum, 1ull);
        if (2 * length < n) atomicAdd(table + total - sum, 1ull);  // the rest of the ring
    }
}

// ends[i] is the number of results that are at most i.
extern "C" __global__ void __launch_bounds__(THREADS)
    expand(const long long* __restrict__ ends, long long size, long long results, Sum* __restrict__ result) {
    __shared__ long long range[2];
    const long long first = (long long)blockIdx.x * TILE, last = min(first + TILE, results);
    if (threadIdx.x < 2) {  // the numbers of the first and of the last result
        const long long place = threadIdx.x == 0 ? first : last - 1;
        long long low = 0, high = size - 1;
        while (low < high) {
            const long long middle = (low + high) / 2;
            if (ends[middle] > place) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        range[threadIdx.x] = low;
    }
    __syncthreads();
    for (long long place = first + threadIdx.x; place < last; place += THREADS) {
        long long low = range[0], high = range[1];
        while (low < high) {
            const long long middle = (low + high) / 2;
            if (ends[middle] > place) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        result[place] = low;
    }
}
