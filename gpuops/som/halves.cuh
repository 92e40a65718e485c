// Features as halves (float16), for tensor cores.
//
// The tensor cores multiply core matrices: 8 rows (samples or units) of 8 dimensions, 128 contiguous bytes, a row after
// the other. So lane l of a warp finds its operand of an mma in word l of a core matrix. Rows lie in this order:
//
//     [blocks of 64 rows][slabs of `slab` dimensions][8 groups of rows][chunks of 8 dimensions][8 rows][8 dimensions]
//
// first all features rounded to halves, hi, then all remainders rounded to halves, lo.
#pragma once

constexpr int BLOCK_ROWS = 64, CHUNK = 8;

// Eight dimensions of a row.
struct alignas(16) Chunk {
    unsigned pairs[CHUNK / 2];
};

// Returns the number of the chunk that holds the dimensions from 8 chunk on.
__device__ inline long long chunk_at(long long row, int chunk, int slab, int depth) {
    const int chunks = slab / CHUNK;
    const long long block = row / BLOCK_ROWS * (depth / slab) + chunk / chunks;
    return ((block * 8 + row % BLOCK_ROWS / 8) * chunks + chunk % chunks) * 8 + row % 8;
}

// Two numbers as halves, the first one in the low bits.
__device__ inline unsigned pair_of_halves(float first, float second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

__device__ inline void from_halves(float& first, float& second, unsigned pair) {
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(first), "=f"(second)
        : "r"(pair));
}

// hi: both values rounded to halves; lo: both remainders rounded to halves. The values become the remainders.
__device__ inline void split(unsigned& hi, unsigned& lo, double (&values)[2]) {
    hi = pair_of_halves((float)values[0], (float)values[1]);
    float first, second;
    from_halves(first, second, hi);
    values[0] -= first;
    values[1] -= second;
    lo = pair_of_halves((float)values[0], (float)values[1]);
}
