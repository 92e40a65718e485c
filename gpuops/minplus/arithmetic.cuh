// Min-plus arithmetic in each dtype: sums and minima, by the fastest instructions.
//
//     Element      the type of an entry of a matrix
//     Word         the type in registers and shared memory: LANES elements side by side, two of int16, else one
//     relax        w = min(w, a0 + b0, a1 + b1): two steps p at once, because Hopper has a minimum of three operands
//     relax_pair   relaxes two neighbouring words of a row, which share a0 and a1
//
// `relax` and `relax_pair` take the number of the word in its tile, a constant once loops are unrolled. Where two
// instruction sequences use different pipes of the chip, some words use one sequence and some the other.

#pragma once

template <class Element>
__device__ inline Element infinity();
template <>
__device__ inline float infinity<float>() {
    return __int_as_float(0x7f800000);
}
template <>
__device__ inline double infinity<double>() {
    return __longlong_as_double(0x7ff0000000000000);
}
template <>
__device__ inline int infinity<int>() {
    return (1 << 30) - 1;
}
template <>
__device__ inline short infinity<short>() {
    return (1 << 14) - 1;
}

__device__ inline float shorter(float x, float y) {
    return fminf(x, y);
}
// Doubles use a comparison and a selection, because fmin would also check for NaN, in software.
__device__ inline double shorter(double x, double y) {
    return y < x ? y : x;
}
__device__ inline int shorter(int x, int y) {
    return min(x, y);
}

// Words of one element. Adding 0 turns -0.0 into +0.0.
template <class T>
struct OneLane {
    using Element = T;
    using Word = T;
    static constexpr int LANES = 1;
    static __device__ Word broadcast(T x) { return x + T(0); }
    static __device__ Word pack(const T* x) { return x[0] + T(0); }
    static __device__ void unpack(T* x, Word w) { x[0] = w; }
    static __device__ void relax(int, Word& w, Word a0, Word b0, Word a1, Word b1) {
        w = shorter(shorter(w, a0 + b0), a1 + b1);
    }
};

struct Float32 : OneLane<float> {};
struct Float64 : OneLane<double> {};

// For floats from +0.0 to +inf the order of the bits, read as integers, is the order of the numbers. Two additions
// and one integer minimum of three are three instructions where fminf needs four.
struct NonnegativeFloat32 : OneLane<float> {
    static __device__ void relax(int, float& w, float a0, float b0, float a1, float b1) {
        w = __int_as_float(__vimin3_s32(__float_as_int(w), __float_as_int(a0 + b0), __float_as_int(a1 + b1)));
    }
};

// Hopper adds and takes the minimum in one instruction, but on one pipe only. So half of the words use two additions,
// done by the multipliers, and one minimum of three operands. The factor blockDim.z is 1, which the compiler does not
// know: otherwise it would turn an addition and a minimum back into the single instruction.
struct Int32 : OneLane<int> {
    static __device__ int sum(int a, int b) { return a * (int)blockDim.z + b; }
    static __device__ void relax(int word, int& w, int a0, int b0, int a1, int b1) {
        w = word % 2 ? __vimin3_s32(w, sum(a0, b0), sum(a1, b1)) : __viaddmin_s32(a1, b1, __viaddmin_s32(a0, b0, w));
    }
};

struct Int16 {
    using Element = short;
    using Word = unsigned;
    static constexpr int LANES = 2;
    static __device__ Word broadcast(short x) { return (unsigned short)x * 0x10001u; }
    static __device__ Word pack(const short* x) { return (unsigned short)x[0] | (unsigned)(unsigned short)x[1] << 16; }
    static __device__ void unpack(short* x, Word w) {
        x[0] = (short)(w & 0xffff);
        x[1] = (short)(w >> 16);
    }
    static __device__ void relax(int, Word& w, Word a0, Word b0, Word a1, Word b1) {
        w = __viaddmin_s16x2(a1, b1, __viaddmin_s16x2(a0, b0, w));
    }
};

// Without negative numbers, one addition of whole words adds both lanes, because INF + INF does not carry. Several
// pipes can do this addition: three quarters of the words use two additions and one minimum of three operands.
struct NonnegativeInt16 : Int16 {
    static __device__ void relax(int word, Word& w, Word a0, Word b0, Word a1, Word b1) {
        if (word % 4) {
            w = __vimin3_u16x2(w, a0 + b0, a1 + b1);
        } else {
            Int16::relax(word, w, a0, b0, a1, b1);
        }
    }
};

template <class Arithmetic, class Word = typename Arithmetic::Word>
__device__ inline void relax_pair(int word, Word* w, Word a0, const Word* b0, Word a1, const Word* b1) {
    Arithmetic::relax(word, w[0], a0, b0[0], a1, b1[0]);
    Arithmetic::relax(word + 1, w[1], a0, b0[1], a1, b1[1]);
}

// On Hopper the order of the instructions matters. Inline PTX keeps an order in which two successive instructions read
// the same operand a: the second read comes from a cache in front of the registers. The ports of the registers are what
// limits this arithmetic.
#if __CUDA_ARCH__ >= 900
template <>
__device__ inline void relax_pair<NonnegativeFloat32>(int, float* w, float a0, const float* b0, float a1,
                                                      const float* b1) {
    const auto sum = [](float a, float b) {
        float s;
        asm volatile("add.ftz.f32 %0, %1, %2;" : "=f"(s) : "f"(a), "f"(b));
        return s;
    };
    const auto relax_to = [](float& w, float x, float y) {
        int bits = __float_as_int(w);
        asm volatile("{.reg .s32 m; min.s32 m, %1, %2; min.s32 %0, %0, m;}"
                     : "+r"(bits)
                     : "r"(__float_as_int(x)), "r"(__float_as_int(y)));
        w = __int_as_float(bits);
    };
    const float s0 = sum(a0, b0[0]), s1 = sum(a0, b0[1]);
    const float t0 = sum(a1, b1[0]), t1 = sum(a1, b1[1]);
    relax_to(w[0], s0, t0);
    relax_to(w[1], s1, t1);
}
#endif
