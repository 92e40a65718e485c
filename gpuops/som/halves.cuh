// A number as the sum of two halves (float16), for tensor cores.
#pragma once

// Two numbers as halves, the first one in the low bits.
__device__ inline unsigned pair_of_halves(float first, float second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// hi: both numbers rounded to halves; lo: both remainders rounded to halves.
__device__ inline void split(unsigned& hi, unsigned& lo, float first, float second) {
    hi = pair_of_halves(first, second);
    float first_hi, second_hi;
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(first_hi), "=f"(second_hi)
        : "r"(hi));
    lo = pair_of_halves(first - first_hi, second - second_hi);
}

struct alignas(16) Fragment {
    unsigned hi[2], lo[2];
};
