// Closes a small matrix d (n, n) in place, in one launch: the independent block of blocked Floyd-Warshall. It is closed
// by tiles itself. Stage K computes each tile
//
//     d[K,J] = min(d[K,J], d*[K,K] (x) d[K,J])        d*[K,K] is closed already
//     d[I,J] = min(d[I,J], d[I,K] (x) new d[K,J])
//
// The first block, the *closer*, does nothing but the slowest part: it closes d[K+1,K+1]. Each tile has an owner, which
// keeps it in registers for the whole launch. The owners of column J compute new d[K,J] together, by strips of columns;
// in column K+1 they go on with the same columns of d[K+1,K+1], which the closer waits for.
//
// There is no barrier of the grid: a block waits for the tiles that it reads. A tile is published when another block
// needs it, into a place that no other stage uses, so blocks never race:
//
//     before[K,J]     d[K,J] before stage K           before[K,K]     d[K,K] before stage K - 1, then after it, by strips
//     after[K,J]      new d[K,J], by strips           after[K,K]      d*[K,K]
//     columns[I,K]    d[I,K] before stage K
//
// Each is stored tile by tile, as [n / TILE][n / TILE][TILE][TILE], padded with infinity. Loads bypass the first-level
// cache, because other multiprocessors stored the data.
//
// Launch: cooperative, at most BLOCKS blocks on every multiprocessor: a block for one tile, else one more than there are
// tiles, and BLOCKS - 1 more, such that the blocks that share the closer's multiprocessor may leave. With fewer blocks, at
// least two, a block owns several tiles and keeps them in d.
// Macros: BLOCKS, and the macros of closure_tile.cuh.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "../device/grid_barrier.cuh"
#include "panel_closure.cuh"

constexpr int MOST = 32;            // tiles in a row of a matrix, at most
constexpr int STRIPS = TILE / OWN;  // strips of a tile, of OWN columns

// Counts of arrivals; all 0 at the start of a launch. Blocks that wait for the same tile read the same line of the
// cache, and few others do. An array is [MOST][MOST].
struct Arrivals {
    unsigned multiprocessor;  // 1 + the number of the closer's multiprocessor
    unsigned left, owners;    // blocks that have left, and that own a tile
    unsigned unused[29];
    unsigned closed[1024];   // [J][K]: 1 once d*[K,K] is there, for the owners of column J
    unsigned before[1024];   // [J][K]: 1
    unsigned after[1024];    // [J][K]: strips of new d[K,J]; [K][K]: strips of d[K,K] after stage K - 1
    unsigned columns[1024];  // [I][K]: 1
};

__device__ inline unsigned multiprocessor() {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

// The published tiles.
struct Published {
    Element *before_, *after_, *columns_;
    int tiles;

    __device__ Element* at(Element* matrix, int i, int j) const {
        return matrix + (long long)(i * tiles + j) * TILE * TILE;
    }
    __device__ Element* before(int k, int j) const { return at(before_, k, j); }
    __device__ Element* after(int k, int j) const { return at(after_, k, j); }
    __device__ Element* columns(int i, int k) const { return at(columns_, i, k); }
};

struct Shared {
    Tile left, right;
    Wide strips[TILE / 2][TILE + 4];  // columns of a tile, transposed: those of a block's strips
};

struct Event {
    const unsigned* arrived;
    unsigned expected = 1;
};

// All threads of a block wait for up to four events.
template <class... Events>
__device__ inline void await(Events... events) {
    const Event all[] = {events...};
#pragma unroll
    for (int e = 0; e < (int)sizeof...(events); ++e) {
        if (threadIdx.x == e * (THREADS / 4)) wait_for_arrivals(all[e].arrived, all[e].expected);
    }
    __syncthreads();
}

// All threads of a block call this when they have stored what a thread of the block then announces by `arrive`.
__device__ inline void finish_stores() {
    __syncthreads();  // before arrivals
}

// An arrival takes long, so that two of them are made by two warps.
__device__ inline void announce(unsigned* arrived, unsigned times = 1, unsigned thread = 0) {
    if (threadIdx.x == thread) arrive(arrived, times);
}

// Loads a thread's part of a published tile. All loads are issued before the first value is used.
__device__ inline void load_part(Own& own, const Element* tile) {
    const Bits* from = (const Bits*)(tile + own_row() * TILE + own_column());
    Neighbours rows[OWN];
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int a = 0; a < ACCESSES; ++a) rows[r].bits[a] = __ldcg(from + r * TILE / OWN * ACCESSES + a);
    }
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) own[r][s] = rows[r].elements[s];
    }
}

__device__ inline void store_part(Element* tile, const Own& own) {
    Bits* to = (Bits*)(tile + own_row() * TILE + own_column());
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        Neighbours row;
#pragma unroll
        for (int s = 0; s < OWN; ++s) row.elements[s] = Element(own[r][s]);
#pragma unroll
        for (int a = 0; a < ACCESSES; ++a) __stcg(to + r * TILE / OWN * ACCESSES + a, row.bits[a]);
    }
}

__device__ inline void share(Tile& tile, const Own& own) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) tile[own_row() + r][own_column() + s] = own[r][s];
    }
}

// min(known, a (x) the strip) for an element of the strip.
__device__ inline Wide relaxed_in_strip(Wide known, const Wide* a, const Wide* strip) {
    Wide sums[2] = {known, infinity<Element>()};
#pragma unroll 8
    for (int p = 0; p < TILE; p += 4) {
        Wide x[4], y[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            x[q] = a[p + q];
            y[q] = strip[p + q];
        }
        sums[0] = relaxed(sums[0], x[0], y[0], x[1], y[1]);
        sums[1] = relaxed(sums[1], x[2], y[2], x[3], y[3]);
    }
    return shorter(sums[0], sums[1]);
}

// Closes d[k,k], after its stage k - 1; a diagonal entry d[i][i] counts as min(d[i][i], 0).
__device__ __forceinline__ void close_pivots(Own& own, double tolerance) {
    if (own_row() == own_column()) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) own[r][r] = shorter(own[r][r], Wide(0));
    }
    close_by_panels(own, tolerance);
}

// The closer's work: d*[k,k].
__device__ __forceinline__ void close_next(Element* d, long long stride, int n, double tolerance, Arrivals* arrivals,
                                           const Published& published, int k) {
    Own own;
    if (k == 0) {
        load_own(own, d, stride, n, n);
    } else {
        await(Event{arrivals->after + k * MOST + k, STRIPS});
        load_part(own, published.before(k, k));
    }
    close_pivots(own, tolerance);
    if (published.tiles == 1) return store_own(d, stride, n, n, own);
    store_part(published.after(k, k), own);
    finish_stores();
    if (threadIdx.x < published.tiles) arrive(arrivals->closed + threadIdx.x * MOST + k);
}

// Computes strips of new d[k,j], j != k, as the owner of tile (i, j), and for j = k + 1 of d[j,j].
__device__ __forceinline__ void relax_strips(Arrivals* arrivals, const Published& published, int k, int i, int j,
                                             Shared& shared) {
    constexpr int VALUES = TILE * OWN / THREADS;  // that a thread computes of a strip
    const int tiles = published.tiles, first = (i - k + tiles) % tiles, count = (STRIPS - first + tiles - 1) / tiles;
    if (count <= 0) return;
    const bool goes_on = j == k + 1;
    const int column = threadIdx.x % OWN, line = threadIdx.x / OWN;
    // The strip m of the block is number first + m * tiles in the tile.
    const auto place = [&](int m, int v) {
        return (line + v * (THREADS / OWN)) * TILE + (first + m * tiles) * OWN + column;
    };
    const auto strip = [&](int m) { return shared.strips[m * OWN + column]; };
    const Event closed{arrivals->closed + j * MOST + k}, row{arrivals->before + j * MOST + k};
    Own pivots, known;
    Wide next[VALUES];  // of d[j,j]
    const auto load_next = [&](int m) {
#pragma unroll
        for (int v = 0; v < VALUES; ++v) next[v] = __ldcg(published.before(j, j) + place(m, v));
    };
    if (goes_on) {
        await(closed, row, Event{arrivals->columns + j * MOST + k}, Event{arrivals->before + j * MOST + j});
        load_part(known, published.columns(j, k));
        load_next(0);
    } else {
        await(closed, row);
    }
    load_part(pivots, published.after(k, k));
    for (int m = 0; m < count; ++m) {
#pragma unroll
        for (int v = 0; v < VALUES; ++v) {
            strip(m)[line + v * (THREADS / OWN)] = __ldcg(published.before(k, j) + place(m, v));
        }
    }
    share(shared.left, pivots);
    if (goes_on) share(shared.right, known);
    __syncthreads();
    for (int m = 0; m < count; ++m) {
        Wide values[VALUES];
#pragma unroll
        for (int v = 0; v < VALUES; ++v) {
            const int r = line + v * (THREADS / OWN);
            values[v] = relaxed_in_strip(strip(m)[r], shared.left[r], strip(m));
            __stcg(published.after(k, j) + place(m, v), Element(values[v]));
        }
        if (!goes_on) continue;
        __syncthreads();  // no thread reads the strip any more
#pragma unroll
        for (int v = 0; v < VALUES; ++v) strip(m)[line + v * (THREADS / OWN)] = values[v];
        __syncthreads();
#pragma unroll
        for (int v = 0; v < VALUES; ++v) {
            const int r = line + v * (THREADS / OWN);
            const Wide relaxed = relaxed_in_strip(next[v], shared.right[r], strip(m));
            __stcg(published.before(j, j) + place(m, v), Element(relaxed));
        }
        if (m + 1 < count) load_next(m + 1);
    }
    finish_stores();
    if (goes_on) announce(arrivals->after + j * MOST + j, count);
    announce(arrivals->after + j * MOST + k, count, THREADS / 2);
}

// Computes tile (i, j) after stage k as its owner.
__device__ __forceinline__ void pass_tile(Own& own, Arrivals* arrivals, const Published& published, int k, int i, int j,
                                          Shared& shared) {
    if (i != k) {
        Own known;
        if (j != k) {
            await(Event{arrivals->columns + i * MOST + k});
            load_part(known, published.columns(i, k));
            share(shared.left, known);
        } else {
            share(shared.left, own);
        }
    }
    await(j == k ? Event{arrivals->closed + j * MOST + k} : Event{arrivals->after + j * MOST + k, STRIPS});
    if (i == k) return load_part(own, published.after(k, j));
    Own known;
    load_part(known, published.after(k, j));
    share(shared.right, known);
    __syncthreads();
    relax_tile(own, shared.left, shared.right);
    __syncthreads();  // no thread reads `shared` any more
}

// Publishes tile (i, j) after stage k, if another block needs it.
__device__ __forceinline__ void publish(const Own& own, Arrivals* arrivals, const Published& published, int k, int i,
                                        int j) {
    if (i == (i == j ? k + 2 : k + 1)) {
        store_part(published.before(i, j), own);
        finish_stores();
        announce(arrivals->before + j * MOST + i);
    } else if (i != j && j == k + 1) {
        store_part(published.columns(i, j), own);
        finish_stores();
        announce(arrivals->columns + i * MOST + j);
    }
}

// The number of the first tile that a block owns; `count` or more if none.
__device__ inline unsigned first_tile(Arrivals* arrivals, unsigned count) {
    if (gridDim.x <= count) return blockIdx.x - 1;
    __shared__ unsigned first;
    if (threadIdx.x == 0) {
        wait_for_arrivals(&arrivals->multiprocessor, 1);
        const bool beside = __ldcg(&arrivals->multiprocessor) == multiprocessor() + 1;
        const bool leaves = beside && atomicAdd(&arrivals->left, 1u) < gridDim.x - 1 - count;
        first = leaves ? count : atomicAdd(&arrivals->owners, 1u);
    }
    __syncthreads();
    return first;
}

// arrivals: `Arrivals`, followed by the published tiles.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_small(Element* d, long long stride, int n, double tolerance, Arrivals* arrivals) {
    __shared__ alignas(16) Shared shared;
    const int tiles = (n + TILE - 1) / TILE;
    const unsigned count = tiles * tiles;
    Element* matrices = (Element*)(arrivals + 1);
    const long long matrix = (long long)count * TILE * TILE;
    const Published published{matrices, matrices + matrix, matrices + 2 * matrix, tiles};
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) arrive(&arrivals->multiprocessor, multiprocessor() + 1);
        for (int k = 0; k < tiles; ++k) close_next(d, stride, n, tolerance, arrivals, published, k);
        return;
    }
    const unsigned first = first_tile(arrivals, count), step = min(gridDim.x - 1, count);
    const bool keeps = first + step >= count;  // one tile, in registers
    Own own;
    for (int k = -1; k < tiles; ++k) {
        for (unsigned place = first; place < count && k >= 0; place += step) {
            const int i = place / tiles, j = place % tiles;
            if (j != k) relax_strips(arrivals, published, k, i, j, shared);
        }
        for (unsigned place = first; place < count; place += step) {
            const int i = place / tiles, j = place % tiles;
            Element* target = d + i * TILE * stride + j * TILE;
            const bool is_closers = i == j && i == k + 1;
            if (k < 0 || !keeps) load_own(own, target, stride, n - i * TILE, n - j * TILE);
            if (k >= 0 && !is_closers) pass_tile(own, arrivals, published, k, i, j, shared);
            publish(own, arrivals, published, k, i, j);
            if (k + 1 == tiles || (k >= 0 && !keeps)) store_own(target, stride, n - i * TILE, n - j * TILE, own);
        }
    }
}
