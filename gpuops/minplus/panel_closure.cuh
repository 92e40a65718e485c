// Closes a tile by panels of pivots: few barriers, for a block that other blocks wait for.
//
// Macros: as in closure_tile.cuh; THREADS at least 2 * TILE.
#pragma once

#include "closure_tile.cuh"

// OWN neighbours, in one access.
struct alignas(OWN * sizeof(Wide) < 16 ? OWN * sizeof(Wide) : 16) Line {
    Wide values[OWN];
};

// The OWN columns of a panel of pivots and its OWN rows, [0] and [1]; columns are transposed.
using Panel = Wide[2][OWN][TILE];

// Relaxes row or column `line` of a panel whose first pivot is k0 over the pivots of the panel, each value over the
// pivots before its own. `side` 0: a row of the tile, with values in the columns of the panel; 1: a column.
__device__ inline void relax_line(Panel& after, const Panel& before, int side, int line, int k0) {
    Wide values[OWN];
    Own pivots;  // for a column transposed
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
        values[k] = before[side][k][line];
#pragma unroll
        for (int s = 0; s < OWN; ++s) pivots[k][s] = before[1 - side][k][k0 + s];
    }
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
        if (line == k0 + k) values[k] = 0;
#pragma unroll
        for (int s = k + 1; s < OWN; ++s) {
            values[s] = relaxed(values[s], values[k], pivots[k][s]);
#pragma unroll
            for (int r = k + 1; r < OWN; ++r) pivots[r][s] = relaxed(pivots[r][s], pivots[r][k], pivots[k][s]);
        }
        after[side][k][line] = values[k];
    }
}

// Closes a whole tile with the bits of `close_tile`, by panels of OWN pivots, with two barriers for a panel instead of
// OWN. In step k `close_tile` relaxes with row k and column k as they are after the steps before k. The same values come
// about in three steps:
//
// 1. The owners publish the rows and columns of the panel, relaxed over the panels before it.
// 2. A thread for each row and each column of the tile relaxes its values in the panel (`relax_line`).
// 3. The owners relax their elements over all pivots of the panel.
//
// So every element takes the minimum of the same sums as in `close_tile`.
__device__ inline void close_by_panels(Own& own, double tolerance) {
    static_assert(THREADS >= 2 * TILE, "a thread for each line");
    __shared__ alignas(16) Panel before, after;
    const int i0 = own_row(), j0 = own_column();
    const int side = threadIdx.x / TILE, line = threadIdx.x % TILE;
#pragma unroll 1
    for (int k0 = 0; k0 < TILE; k0 += OWN) {
#pragma unroll
        for (int k = 0; k < OWN; ++k) {
            Line column, row;
#pragma unroll
            for (int s = 0; s < OWN; ++s) {
                column.values[s] = own[s][k];
                row.values[s] = own[k][s];
            }
            if (j0 == k0) *(Line*)&before[0][k][i0] = column;
            if (i0 == k0) *(Line*)&before[1][k][j0] = row;
        }
        __syncthreads();
        if (side < 2) relax_line(after, before, side, line, k0);
        __syncthreads();
        Line columns[OWN], rows[OWN];
#pragma unroll
        for (int k = 0; k < OWN; ++k) {
            columns[k] = *(const Line*)&after[0][k][i0];
            rows[k] = *(const Line*)&after[1][k][j0];
        }
#pragma unroll
        for (int k = 0; k < OWN; k += 2) {
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) {
                    own[r][s] = relaxed(own[r][s], columns[k].values[r], rows[k].values[s], columns[k + 1].values[r],
                                        rows[k + 1].values[s]);
                }
            }
        }
    }
    clear_zero_cycles(own, tolerance);
}
