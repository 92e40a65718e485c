// Distances as integers in the same order, so that an integer minimum is the minimum of the distances.
//
//     Value   what weights and sums are: float, double or int
//     Word    what is in memory: an integer of the same size
//
// The bits of a float are in order where its sign is positive. Where it may be negative (NEGATIVE), those of negative
// numbers are flipped. Nothing reaches UNREACHABLE, and what is as far as that is not stored.
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
    // A sum below 0 that is flushed to zero is -0.0, which would not be the same word as +0.0.
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
    // Saturated, on both sides where sums may be negative; `fits` tells.
    __device__ static Value sum(Value a, Value b) {
        const long long least = min((long long)a + b, (long long)UNREACHABLE);
        return (Value)(NEGATIVE ? max((long long)LOWEST, least) : least);
    }
    __device__ static bool fits(Value a, Value b) {
        return (long long)a + b < UNREACHABLE && (!NEGATIVE || (long long)a + b >= LOWEST);
    }
    __device__ static Word at(double x) { return x < UNREACHABLE ? (Word)x : UNREACHABLE; }
};
