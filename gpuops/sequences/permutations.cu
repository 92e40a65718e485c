// Permutations in lexicographic order, from their ranks.
//
//     permute_different   permutations of 5 to 16 different elements
//     permute_repeated    permutations of any number of elements, of up to KINDS kinds, which may repeat
//
// The rank of a row is `first` plus the number of the row. Elements are numbers of kinds, one byte each, row after row.
//
// Each group of 120 consecutive permutations differs only in the last five elements. For each group in a block's rows,
// one thread finds the common first elements, from the digits of the rank in factorial base, and the five elements
// left. The permutations of five elements are tabulated. Rows are made in shared memory and copied by 16 bytes.
//
// Launch: permute_different: a block of THREADS threads for ROWS rows; permute_repeated: a thread for each row.
// Macro: THREADS, at least GROUPS.

using Rank = unsigned long long;

constexpr int SHORT = 16, KINDS = 20;  // 21! is above 2^63
constexpr int LAST = 5, GROUP = 120, ROWS = 1024, GROUPS = ROWS / GROUP + 2;
constexpr int IN_32_BITS = 14;  // 14! / GROUP is below 2^32

// The common first elements of the permutations of a group, and the elements left, ascending, one byte each.
struct Group {
    unsigned char begin[SHORT];
    unsigned left[2];
};

// Returns the digits of a rank in the mixed base LAST + 1, LAST + 2, ... n, 4 bits each. The digit of base n is lowest;
// it is the place of the first element among all n, the next digit the place of the second among the elements left.
template <class T>
__device__ inline Rank digits_of(T rank, int n) {
    Rank digits = 0;
    for (int base = LAST + 1; base <= n; ++base) {
        const T rest = rank / (T)base;
        digits |= (Rank)(rank - rest * (T)base) << 4 * (n - base);
        rank = rest;
    }
    return digits;
}

__device__ inline void find(Group& group, Rank number, int n) {
    Rank digits = n <= IN_32_BITS ? digits_of((unsigned)number, n) : digits_of(number, n);
    Rank left = 0xfedcba9876543210ull;
    for (int i = 0; i < n - LAST; ++i, digits >>= 4) {
        const int shift = 4 * (int)(digits & 15);
        group.begin[i] = (unsigned char)(left >> shift & 15);
        const Rank below = left & ((1ull << shift) - 1);
        left = (left >> shift >> 4 << shift) | below;
    }
    group.left[0] = (unsigned)(left & 15 | (left & 0xf0) << 4 | (left & 0xf00) << 8 | (left & 0xf000) << 12);
    group.left[1] = (unsigned)(left >> 16 & 15);
}

// Returns the permutation of LAST elements with this rank: the numbers of the elements, 4 bits each, the first lowest.
__device__ inline unsigned permutation_of_last(unsigned rank) {
    unsigned result = 0, left = 0x43210;
    for (int i = 0, arrangements = GROUP; i < LAST; ++i) {
        arrangements /= LAST - i;
        const unsigned shift = 4 * (rank / arrangements);
        rank %= arrangements;
        result |= (left >> shift & 15) << 4 * i;
        left = (left >> shift >> 4 << shift) | (left & ((1u << shift) - 1));
    }
    return result;
}

struct alignas(16) Sixteen {
    unsigned words[4];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    permute_different(Rank first, long long count, int n, unsigned char* __restrict__ rows) {
    __shared__ alignas(16) unsigned char block[ROWS * SHORT];
    __shared__ Group groups[GROUPS];
    __shared__ unsigned last[GROUP];
    const long long from = (long long)blockIdx.x * ROWS;
    const int here = (int)min(count - from, (long long)ROWS);
    const Rank number = (first + from) / GROUP;
    const unsigned before = (unsigned)((first + from) % GROUP);
    if (threadIdx.x < (before + here + GROUP - 1) / GROUP) {
        find(groups[threadIdx.x], number + threadIdx.x, n);
    }
    for (int i = threadIdx.x; i < GROUP; i += THREADS) last[i] = permutation_of_last(i);
    __syncthreads();
    for (int i = threadIdx.x; i < here; i += THREADS) {
        const unsigned place = before + i;
        const Group& group = groups[place / GROUP];
        const unsigned order = last[place % GROUP], first_four = __byte_perm(group.left[0], group.left[1], order);
        unsigned char* const row = block + i * n;
        for (int k = 0; k < n - LAST; ++k) row[k] = group.begin[k];
        for (int k = 0; k < 4; ++k) row[n - LAST + k] = (unsigned char)(first_four >> 8 * k);
        row[n - 1] = (unsigned char)__byte_perm(group.left[0], group.left[1], order >> 16);
    }
    __syncthreads();
    const int bytes = here * n, whole = bytes / 16;
    unsigned char* const to = rows + from * n;  // a multiple of 16, as ROWS is one
    for (int i = threadIdx.x; i < whole; i += THREADS) ((Sixteen*)to)[i] = ((const Sixteen*)block)[i];
    for (int i = 16 * whole + threadIdx.x; i < bytes; i += THREADS) to[i] = block[i];
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
            // arrangements * left[kind] / remaining, which is an integer, without a product above 2^64
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
