// Features of samples and units, from which screens compute scores, and what their packing and the decision share.
//
// A score is the bias of a unit plus the dot product of the features or, for taxicab, the sum of their absolute
// differences. Features are centred, and scaled by a power of two:
//
//     metric               sample x             unit w      bias
//     euclidean            -2 x                 w           |w|^2
//     euclidean, missing   -2 x or 0; 1 or 0    w; w^2      0
//     taxicab              x                    w           0
//     cosine               -x / |x|             w / |w|     0
//
// The screen in float32 takes units as [tiles][depth][TILE] and samples as [panels][rows][PANEL]; for taxicab with
// missing values, masks, 1 or 0, follow the features of x. Tensor cores take both as halves (halves.cuh), with the bias
// in two further features, which samples multiply by COARSE and by 1.
//
// No feature exceeds 2^14, so that it fits into two halves. Units and samples with larger features are not screened.
// Such a unit gets the bias -inf and the norm +inf, so that `decide` evaluates its tile; such a sample gets the norm
// +inf, so that `decide` evaluates all tiles.
//
// Macros: FLOAT, the type of the values; METRIC, EUCLIDEAN, TAXICAB or COSINE.
#pragma once

#include "search.cuh"

constexpr int EUCLIDEAN = 0, TAXICAB = 1, COSINE = 2;
constexpr bool DOTS = METRIC != TAXICAB;

constexpr int TILE = 64;    // units that share one least score
constexpr int PANEL = 128;  // samples whose features lie together, or units that a block packs

constexpr int QUAD = 4;  // units that `match` looks at together: 2 l, 2 l + 1 and both + 8 of 16 units

constexpr int NOT_FINITE = 1, NOTHING_PRESENT = 2;
constexpr double LARGEST_VALUE = 3.273390607896142e150;  // 2^500: sums of squares must not overflow
constexpr double LARGEST_SAMPLE = 16384, LARGEST_UNIT = 128;
constexpr double COARSE = 256, LARGEST_BIAS = 32768 * COARSE;

// A block of `pack` reports the first fault in its rows as NO_FAULT - (4 * row + kind), or 0 if there is none.
constexpr unsigned long long NO_FAULT = 1ull << 62;

__device__ inline double infinite() {
    return __longlong_as_double(0x7ff0000000000000);
}

__device__ inline long long panels_of_units(const Search& s) {
    return (s.m + PANEL - 1) / PANEL;
}

// Rows of features of units in float32; those behind the dimensions are not used.
__device__ inline int fine_rows(const Search& s) {
    return s.tensor ? (s.d + 3) / 4 * 4 : s.depth;
}

// Returns where the values of a unit as given begin in [quads][d][QUAD]; if `matched`.
__device__ inline long long first_of_exact(long long unit, int d) {
    const long long quad = unit / 16 * 4 + unit % 8 / 2;
    return quad * d * QUAD + unit % 16 / 8 * 2 + unit % 2;
}

__device__ inline bool usable(double x) {
    return fabs(x) <= LARGEST_VALUE;
}
