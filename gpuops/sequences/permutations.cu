// Permutations in lexicographic order, a thread for each, from its rank.
//
//     permute_different   of up to 16 different elements: the digits of the rank in factorial base, and what is left, as
//                         16 numbers of 4 bits in a word each
//     permute_repeated    of elements that may repeat, up to KINDS different ones, of any number
//
// A rank is `first` plus the number of the thread. Elements are numbers of kinds, a byte each, rows one after the other.
// The rows of a block of permute_different are neighbours: they are made in shared memory and copied by words.
//
// Launch: a thread for each permutation, in blocks of THREADS, a multiple of 4.
// Macros: THREADS.

using Rank = unsigned long long;

constexpr int SHORT = 16, KINDS = 20;  // 21! is above 2^63
constexpr int IN_32_BITS = 12;         // 12! is below 2^32

// The digits in factorial base, the first one lowest, 4 bits each.
template <class T>
__device__ inline Rank digits_of(T rank, int n) {
    Rank digits = 0;
    for (int base = 2; base <= n; ++base) {
        const T rest = rank / (T)base;
        digits |= (Rank)(rank - rest * (T)base) << 4 * (n - base);
        rank = rest;
    }
    return digits;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    permute_different(Rank first, long long count, int n, unsigned char* __restrict__ rows) {
    __shared__ alignas(4) unsigned char block[THREADS * SHORT];
    const long long from = (long long)blockIdx.x * THREADS;
    if (from + threadIdx.x < count) {
        const Rank rank = first + from + threadIdx.x;
        Rank digits = n <= IN_32_BITS ? digits_of((unsigned)rank, n) : digits_of(rank, n);
        Rank left = 0xfedcba9876543210ull;
        for (int i = 0; i < n; ++i, digits >>= 4) {
            const int shift = 4 * (int)(digits & 15);
            block[threadIdx.x * n + i] = (unsigned char)(left >> shift & 15);
            const Rank below = left & ((1ull << shift) - 1);
            left = (left >> shift >> 4 << shift) | below;
        }
    }
    __syncthreads();
    const int bytes = (int)min(count - from, (long long)THREADS) * n, words = bytes / 4;
    unsigned char* const to = rows + from * n;  // a multiple of 4, as THREADS is one
    for (int i = threadIdx.x; i < words; i += THREADS) ((unsigned*)to)[i] = ((const unsigned*)block)[i];
    for (int i = 4 * words + threadIdx.x; i < bytes; i += THREADS) to[i] = block[i];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    permute_repeated(Rank first, long long count, int n, Rank arrangements, const int* __restrict__ repeats, int kinds,
                     unsigned char* __restrict__ rows) {
    const long long row = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (row >= count) return;
    Rank rank = first + row;
    int left[KINDS];
    for (int kind = 0; kind < kinds; ++kind) left[kind] = repeats[kind];
    for (int i = 0; i < n; ++i) {
        const Rank remaining = n - i, share = arrangements / remaining, rest = arrangements % remaining;
        int kind = 0;
        for (;; ++kind) {
            // arrangements * left / remaining, an integer, without a product above 2^64
            const Rank these = share * left[kind] + rest * left[kind] / remaining;
            if (rank < these) {
                arrangements = these;
                break;
            }
            rank -= these;
        }
        --left[kind];
        rows[row * n + i] = (unsigned char)kind;
    }
}
