// A tile of an array in the registers of a block. Each warp has a contiguous piece of LINES lines. In every line each
// lane has a run of RUN adjacent elements, which are loaded and stored together.
#pragma once

// RUN elements, accessed in vectors of up to 16 bytes.
template <class T, int RUN>
struct alignas(RUN * sizeof(T) < 16 ? RUN * sizeof(T) : 16) Run {
    T values[RUN];
};

// Returns the index of this lane's first element in the first line of its warp.
template <int RUN, int LINES>
__device__ inline long long first_of_lane(long long first_of_tile) {
    return first_of_tile + threadIdx.x / 32 * (LINES * RUN * 32) + threadIdx.x % 32 * RUN;
}

template <class T, int RUN, int LINES>
__device__ inline void load_runs(Run<T, RUN> (&runs)[LINES], const T* __restrict__ x, long long first, long long n,
                                 bool whole) {
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
        const long long i = first + l * (RUN * 32);
        if (whole && (size_t)x % sizeof(Run<T, RUN>) % 16 == 0) {
            runs[l] = *(const Run<T, RUN>*)(x + i);
            continue;
        }
#pragma unroll
        for (int j = 0; j < RUN; ++j) runs[l].values[j] = i + j < n ? x[i + j] : T(0);
    }
}
