// Min-plus arithmetic in each dtype: what a sum and a minimum are, and which instructions do them fastest.
//
// An Element is what matrices hold. A Word is what registers and shared memory hold: one element, or two of int16
// side by side, LANES in all. `relax` takes two steps p at once, w = min(w, a0 + b0, a1 + b1), because Hopper has a
// minimum of three.

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
// On doubles a comparison and a selection: fmin would also look for NaN, in software.
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
    static __device__ void relax(Word& w, Word a0, Word b0, Word a1, Word b1) {
        w = shorter(w, a0 + b0);
        w = shorter(w, a1 + b1);
    }
};

struct Float32 : OneLane<float> {};
struct Float64 : OneLane<double> {};

// For floats from +0.0 to +inf the order of the bits, read as integers, is the order of the numbers. Two additions
// and one integer minimum of three are three instructions where fminf needs four.
struct NonnegativeFloat32 : OneLane<float> {
    static __device__ void relax(float& w, float a0, float b0, float a1, float b1) {
        w = __int_as_float(__vimin3_s32(__float_as_int(w), __float_as_int(a0 + b0), __float_as_int(a1 + b1)));
    }
};

struct Int32 : OneLane<int> {
    static __device__ void relax(int& w, int a0, int b0, int a1, int b1) {
        w = __viaddmin_s32(a0, b0, w);
        w = __viaddmin_s32(a1, b1, w);
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
    static __device__ void relax(Word& w, Word a0, Word b0, Word a1, Word b1) {
        w = __viaddmin_s16x2(a0, b0, w);
        w = __viaddmin_s16x2(a1, b1, w);
    }
};
