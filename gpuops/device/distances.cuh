// Distances as integers in the same order, so that an integer minimum is the minimum of the distances.
//
//     Value   the type of weights and sums: float, double or int
//     Word    the type in memory: an integer of the same size
//
// Read as integers, the bits of non-negative floats are in the order of the numbers. If distances may be negative
// (NEGATIVE), the bits of negative numbers are flipped. Distances are below UNREACHABLE; larger sums are not stored.
#pragma once

template <bool NEGATIVE>
struct Float32 {
    using Value = float;
    using Word = int;
    static constexpr Word UNREACHABLE = 0x7f800000, LOWEST = -0x7fffffff - 1;
    static constexpr bool SUMS_FIT = true;
    __device__ static Word ordered(Word bits) { return NEGATIVE ? bits ^ (bits >> 31 & 0x7fffffff) : bits; }
    __device__ static Word word(Value x) { return ordered(__float_as_int(x)); }
    __device__ static Value value(Word x) { return __int_as_float(ordered(x)); }
    // Adding 0 turns -0.0 into +0.0, which is another word. A negative sum that is flushed to zero is -0.0.
    __device__ static Value sum(Value a, Value b) { return NEGATIVE ? a + b + 0.0f : a + b; }
    __device__ static bool fits(Value, Value) { return true; }
    __device__ static Word at(double x) { return word((Value)x); }
};

template <bool NEGATIVE>
struct Float64 {
    using Value = double;
    using Word = long long;
    static constexpr Word UNREACHABLE = 0x7ff0000000000000, LOWEST = -0x7fffffffffffffff - 1;
    static constexpr bool SUMS_FIT = true;
    __device__ static Word ordered(Word bits) { return NEGATIVE ? bits ^ (bits >> 63 & 0x7fffffffffffffff) : bits; }
    __device__ static Word word(Value x) { return ordered(__double_as_longlong(x)); }
    __device__ static Value value(Word x) { return __longlong_as_double(ordered(x)); }
    __device__ static Value sum(Value a, Value b) { return NEGATIVE ? a + b + 0.0 : a + b; }
    __device__ static bool fits(Value, Value) { return true; }
    __device__ static Word at(double x) { return word(x); }
};

template <bool NEGATIVE>
struct Int32 {
    using Value = int;
    using Word = int;
    static constexpr Word UNREACHABLE = 0x7fffffff, LOWEST = -0x7fffffff - 1;
    static constexpr bool SUMS_FIT = false;
    __device__ static Word ordered(Word x) { return x; }
    __device__ static Word word(Value x) { return x; }
    __device__ static Value value(Word x) { return x; }
    // The sum saturates at UNREACHABLE, and at LOWEST if NEGATIVE; `fits` says whether the exact sum is a distance.
    __device__ static Value sum(Value a, Value b) {
        const long long least = min((long long)a + b, (long long)UNREACHABLE);
        return (Value)(NEGATIVE ? max((long long)LOWEST, least) : least);
    }
    __device__ static bool fits(Value a, Value b) {
        return (long long)a + b < UNREACHABLE && (!NEGATIVE || (long long)a + b >= LOWEST);
    }
    __device__ static Word at(double x) { return x < UNREACHABLE ? (Word)x : UNREACHABLE; }
};
