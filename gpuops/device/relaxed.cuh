// Loads and stores of words that another block stores or loads meanwhile. T has 2, 4, 8 or 16 bytes; parts of up to 8
// bytes are there whole or not at all.
#pragma once

template <class T>
__device__ inline T load_relaxed(const T* from) {
    T x;
    // The loads are volatile, so that a loop that waits keeps them.
    if constexpr (sizeof(T) == 2) {
        unsigned short word;
        asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(word) : "l"(from));
        memcpy(&x, &word, sizeof x);
    } else if constexpr (sizeof(T) == 4) {
        unsigned word;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from));
        memcpy(&x, &word, sizeof x);
    } else if constexpr (sizeof(T) == 8) {
        unsigned long long word;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
        memcpy(&x, &word, sizeof x);
    } else {
        unsigned long long words[2];
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(from));
        static_assert(sizeof x == sizeof words, "2, 4, 8 or 16 bytes");
        memcpy(&x, words, sizeof x);
    }
    return x;
}

template <class T>
__device__ inline void store_relaxed(T* to, const T& x) {
    if constexpr (sizeof(T) == 2) {
        unsigned short word;
        memcpy(&word, &x, sizeof x);
        asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(to), "h"(word) : "memory");
    } else if constexpr (sizeof(T) == 4) {
        unsigned word;
        memcpy(&word, &x, sizeof x);
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
    } else if constexpr (sizeof(T) == 8) {
        unsigned long long word;
        memcpy(&word, &x, sizeof x);
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
    } else {
        unsigned long long words[2];
        static_assert(sizeof x == sizeof words, "2, 4, 8 or 16 bytes");
        memcpy(words, &x, sizeof x);
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words[0]), "l"(words[1]) : "memory");
    }
}
