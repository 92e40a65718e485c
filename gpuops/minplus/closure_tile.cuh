// Closes a matrix by tiles, each in the registers of a block: loads, stores, closures and products of tiles.
//
// Loads bypass the first-level cache, because another block may have stored the data in the same launch.
//
// Macros: ELEMENT, the type of the distances; TILE, such that two tiles fit into 48 KiB of shared memory;
//         THREADS, the threads of a block; OWN, the rows and columns that a thread owns, 4 if not given;
//         NONNEGATIVE, optional, 1 for floats that are not negative.
#pragma once

#include "arithmetic.cuh"

using Element = ELEMENT;
using Wide = decltype(Element() + Element());  // int for int16, because registers have 32 bits

#ifndef OWN
#define OWN 4  // a thread owns OWN x OWN neighbours of a tile
#endif
constexpr int OWNERS = TILE / OWN;  // threads along a side of a tile
static_assert(THREADS == OWNERS * OWNERS, "the macro says what the launch does");

// A thread's part of a tile, and a tile in shared memory. Four words of padding let rows OWN apart start in different
// banks, and every row at a multiple of 16 bytes.
using Own = Wide[OWN][OWN];
using Tile = Wide[TILE][TILE + 4];

__device__ inline int own_row() {
    return (int)threadIdx.x / OWNERS * OWN;
}
__device__ inline int own_column() {
    return (int)threadIdx.x % OWNERS * OWN;
}

// The addition wraps to the width of an element, as in product.cu and on the CPU. Only distances that fall without
// bound, because of a negative cycle, become so small that they wrap, and min never lets a negative diagonal entry
// become positive again.
__device__ inline Wide relaxed(Wide w, Wide a, Wide b) {
    return shorter(w, Wide(Element(a + b)));
}

// Relaxes two steps at once. For floats from +0.0 to +inf the order of the bits, read as integers, is the order of the
// numbers, and integers have a minimum of three operands.
__device__ inline Wide relaxed(Wide w, Wide a0, Wide b0, Wide a1, Wide b1) {
#if NONNEGATIVE
    return __int_as_float(__vimin3_s32(__float_as_int(w), __float_as_int(a0 + b0), __float_as_int(a1 + b1)));
#else
    return relaxed(relaxed(w, a0, b0), a1, b1);
#endif
}

__device__ inline Wide element(const Element* d, long long stride, int i, int j, int rows, int columns) {
    return i < rows && j < columns ? __ldcg(d + i * stride + j) + Element(0) : infinity<Element>();
}

__device__ inline void load_tile(Tile& tile, const Element* d, long long stride, int rows, int columns) {
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        tile[e / TILE][e % TILE] = element(d, stride, e / TILE, e % TILE, rows, columns);
    }
}

// A thread's OWN neighbours in a row are loaded and stored in one or two wide accesses, where they are aligned and lie
// in the matrix.
template <int BYTES>
struct BitsOf {
    using Type = int4;
};
template <>
struct BitsOf<8> {
    using Type = int2;
};
using Bits = BitsOf<OWN * sizeof(Element)>::Type;

union Neighbours {
    Bits bits[OWN * sizeof(Element) / sizeof(Bits)];
    Element elements[OWN];
};
constexpr int ACCESSES = sizeof(Neighbours) / sizeof(Bits);

__device__ inline bool are_whole(const Element* d, long long stride, int columns) {
    return own_column() + OWN <= columns &&
           ((unsigned long long)d | (unsigned long long)stride * sizeof(Element)) % sizeof(Bits) == 0;
}

__device__ inline void load_own(Own& own, const Element* d, long long stride, int rows, int columns) {
    const bool whole = are_whole(d, stride, columns);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        const int i = own_row() + r;
        if (whole && i < rows) {
            Neighbours row;
            const Bits* from = (const Bits*)(d + i * stride + own_column());
#pragma unroll
            for (int a = 0; a < ACCESSES; ++a) row.bits[a] = __ldcg(from + a);
#pragma unroll
            for (int s = 0; s < OWN; ++s) own[r][s] = row.elements[s] + Element(0);
        } else {
#pragma unroll
            for (int s = 0; s < OWN; ++s) own[r][s] = element(d, stride, i, own_column() + s, rows, columns);
        }
    }
}

__device__ inline void store_own(Element* d, long long stride, int rows, int columns, const Own& own) {
    const bool whole = are_whole(d, stride, columns);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        const int i = own_row() + r;
        if (i >= rows) break;
        Element* to = d + i * stride + own_column();
        if (whole) {
            Neighbours row;
#pragma unroll
            for (int s = 0; s < OWN; ++s) row.elements[s] = Element(own[r][s]);
#pragma unroll
            for (int a = 0; a < ACCESSES; ++a) __stcg((Bits*)to + a, row.bits[a]);
        } else {
#pragma unroll
            for (int s = 0; s < OWN; ++s) {
                if (own_column() + s < columns) __stcg(to + s, Element(own[r][s]));
            }
        }
    }
}

// A diagonal entry in [-tolerance, 0) becomes 0.
__device__ inline void clear_zero_cycles(Own& own, double tolerance) {
    if (own_row() != own_column()) return;
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        if (own[r][r] < 0 && own[r][r] >= -tolerance) own[r][r] = 0;
    }
}

// The row and the column of a pivot in shared memory, of two pivots in turn.
struct alignas(16) PivotLines {
    Wide row[2][TILE], column[2][TILE];
};

// Closes a tile over its first `inside` vertices. In step k the owners of row k and column k publish them, in two
// buffers in turn, so that one barrier per step is enough. d[k][k] counts as 0 in step k: it can be less than 0 by
// rounding, which must not accumulate, or because of a negative cycle, and then its owner keeps the negative value.
__device__ inline void close_tile(Own& own, int inside, double tolerance, PivotLines& lines) {
    const int i0 = own_row(), j0 = own_column();
    for (int k0 = 0; k0 < min(TILE, inside); k0 += OWN) {
#pragma unroll
        for (int k = 0; k < OWN; ++k) {
            if (k0 + k >= inside) break;
            Wide* row = lines.row[k % 2];
            Wide* column = lines.column[k % 2];
            const bool owns_pivot = i0 == k0 && j0 == k0;
            if (i0 == k0) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) row[j0 + s] = owns_pivot && s == k ? Wide(0) : own[k][s];
            }
            if (j0 == k0) {
#pragma unroll
                for (int r = 0; r < OWN; ++r) column[i0 + r] = owns_pivot && r == k ? Wide(0) : own[r][k];
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) own[r][s] = relaxed(own[r][s], column[i0 + r], row[j0 + s]);
            }
        }
    }
    clear_zero_cycles(own, tolerance);
}
__device__ inline void close_tile(Own& own, int inside, double tolerance) {
    __shared__ PivotLines lines;
    close_tile(own, inside, tolerance, lines);
}

// own = min(own, a (x) b), over the first `depth` columns of a and, with infinity beyond them, those up to a multiple of
// OWN.
__device__ inline void relax_tile(Own& own, const Tile& a, const Tile& b, int depth = TILE) {
    const int i0 = own_row(), j0 = own_column();
#pragma unroll 4
    for (int p = 0; p < depth; p += OWN) {
        Own x, y;
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
#pragma unroll
            for (int s = 0; s < OWN; ++s) {
                x[r][s] = a[i0 + r][p + s];
                y[r][s] = b[p + r][j0 + s];
            }
        }
#pragma unroll
        for (int q = 0; q < OWN; q += 2) {
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) {
                    own[r][s] = relaxed(own[r][s], x[r][q], y[q][s], x[r][q + 1], y[q + 1][s]);
                }
            }
        }
    }
}
