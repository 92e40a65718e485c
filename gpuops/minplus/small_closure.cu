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
//     pivots[K]       d[K,K] after stage K - 1, by strips
//     closed[K]       d*[K,K]
//     before[K,J]     d[K,J] before stage K           before[K,K]     d[K,K] before stage K - 1
//     after[K,J]      new d[K,J], by strips
//     columns[I,K]    d[I,K] before stage K
//
// Each tile is [TILE][TILE], padded with infinity. Loads bypass the first-level cache, because other multiprocessors
// stored the data.
//
// The way from a closed tile to the next tile of pivots decides how long a stage takes. On it, a value tells by itself
// that it is there: in `pivots`, `closed`, before[K,K + 1], before[K + 1,K + 1] and columns[K + 1,K], every byte is MISSING
// before. So a writer need not wait until its stores have arrived, as it has to before it announces them, and a reader
// waits once, for the value. Other tiles are announced by counts of arrivals.
//
// Launch: cooperative, at most BLOCKS blocks on every multiprocessor: a block for one tile, else one more than there are
// tiles, and BLOCKS - 1 more, such that the blocks that share the closer's multiprocessor may leave. With fewer blocks, at
// least two, a block owns several tiles and keeps them in d.
// Macros: BLOCKS, and the macros of closure_tile.cuh.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "../device/relaxed.cuh"
#include "tile_owners.cuh"

constexpr int MOST = 32;            // tiles in a row of a matrix, at most
constexpr int STRIPS = TILE / OWN;  // strips of a tile, of OWN columns

// Of floats a NaN, of integers more than infinity. Every byte of `Arrivals` and of the tiles that tell by themselves that
// they are there is MISSING at the start of a launch.
constexpr int MISSING = Element(0.5) == Element(0) ? 0x7f : 0xff;
constexpr unsigned START = MISSING * 0x1010101u;

// Counts of arrivals from START on. Blocks that wait for the same tile read the same line of the cache, and few others
// do. An array is [MOST][MOST].
struct Arrivals {
    unsigned multiprocessor;  // 1 + the number of the closer's multiprocessor
    unsigned left, owners;    // blocks that have left, and that own a tile
    unsigned unused[29];
    unsigned before[1024];   // [J][K]: 1
    unsigned after[1024];    // [J][K]: strips of new d[K,J]
    unsigned columns[1024];  // [I][K]: 1
};

// The published tiles, in rows of `tiles`. TELLING rows have tiles that tell by themselves that they are there.
constexpr int TELLING = 5;
struct Published {
    Element* first;
    int tiles;

    __device__ Element* at(int row, int j) const { return first + (long long)(row * tiles + j) * TILE * TILE; }
    __device__ Element* pivots(int k) const { return at(0, k); }
    __device__ Element* closed(int k) const { return at(1, k); }
    __device__ Element* before(int k, int j) const {
        return j == k ? at(2, k) : j == k + 1 ? at(3, k) : at(TELLING + k, j);
    }
    __device__ Element* columns(int i, int k) const { return i == k + 1 ? at(4, k) : at(TELLING + tiles + i, k); }
    __device__ Element* after(int k, int j) const { return at(TELLING + 2 * tiles + k, j); }
};

struct Shared {
    Tile left, right;
    // Columns of a tile, transposed: those of a block's strips, and of one strip of new d[K,J], in turn in two places.
    Wide strips[TILE / 2][TILE + 4], relaxed[2][OWN][TILE + 4];
    unsigned first;  // number of the block's first tile
};

__device__ inline bool is_there(float x) {
    return __float_as_int(x) != (int)START;
}
__device__ inline bool is_there(double x) {
    return __double_as_longlong(x) != -1;
}
__device__ inline bool is_there(int x) {
    return x != (int)START;
}
__device__ inline bool is_there(short x) {
    return x != (short)START;
}

// A value to publish. No distance is MISSING, but a matrix that breaks the rules may hold such a NaN or integer, and
// whoever waits for it would wait for ever.
__device__ inline Element told(Element x) {
    return is_there(x) ? x : Element(infinity<Element>());
}

// Loads a published value, and returns whether it is there.
__device__ inline bool load_awaited(Wide& value, const Element* from) {
    const Element element = load_relaxed(from);
    value = element;
    return is_there(element);
}

// The same for a thread's part of a tile. All loads are issued before the first value is used.
__device__ inline bool load_part(Own& own, const Element* tile) {
    const Bits* from = (const Bits*)(tile + own_row() * TILE + own_column());
    Neighbours rows[OWN];
    bool whole = true;
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int a = 0; a < ACCESSES; ++a) rows[r].bits[a] = load_relaxed(from + r * TILE / OWN * ACCESSES + a);
    }
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            own[r][s] = rows[r].elements[s];
            whole &= is_there(rows[r].elements[s]);
        }
    }
    return whole;
}
__device__ inline void await_part(Own& own, const Element* tile) {
    while (!load_part(own, tile)) __nanosleep(0);
}

__device__ inline void store_part(Element* tile, const Own& own) {
    Bits* to = (Bits*)(tile + own_row() * TILE + own_column());
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        Neighbours row;
#pragma unroll
        for (int s = 0; s < OWN; ++s) row.elements[s] = told(Element(own[r][s]));
#pragma unroll
        for (int a = 0; a < ACCESSES; ++a) __stcg(to + r * TILE / OWN * ACCESSES + a, row.bits[a]);
    }
}

// The closer's work: d*[k,k]. A diagonal entry d[i][i] counts as min(d[i][i], 0).
__device__ __forceinline__ void close_next(Element* d, long long stride, int n, double tolerance,
                                           const Published& published, int k) {
    Own own;
    if (k == 0) {
        load_own(own, d, stride, n, n);
    } else {
        await_part(own, published.pivots(k));
    }
    if (own_row() == own_column()) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) own[r][r] = shorter(own[r][r], Wide(0));
    }
    close_tile(own, TILE, tolerance);
    if (published.tiles == 1) return store_own(d, stride, n, n, own);
    store_part(published.closed(k), own);
}

// Computes strips of new d[k,j], j != k, as the owner of tile (i, j), and for j = k + 1 of d[j,j].
__device__ __forceinline__ void relax_strips(Arrivals* arrivals, const Published& published, int k, int i, int j,
                                             Shared& shared) {
    const int tiles = published.tiles, first = (i - k + tiles) % tiles, count = (STRIPS - first + tiles - 1) / tiles;
    if (count <= 0) return;
    const bool goes_on = j == k + 1;
    const int column = threadIdx.x * VALUES % OWN, line = threadIdx.x * VALUES / OWN;
    // The strip m of the block is number first + m * tiles in the tile.
    const int of_thread = line * TILE + first * OWN + column;
    const auto place = [&](int m, int v) { return of_thread + m * tiles * OWN + v; };
    const auto strip = [&](int m) { return shared.strips + m * OWN; };
    Own pivots, known;
    Wide next[VALUES];  // of d[j,j]
    const auto load_next = [&](int m) {
        bool whole = true;
#pragma unroll
        for (int v = 0; v < VALUES; ++v) whole &= load_awaited(next[v], published.before(j, j) + place(m, v));
        return whole;
    };
    const auto load_strips = [&] {
        bool whole = true;
        for (int m = 0; m < count; ++m) {
#pragma unroll
            for (int v = 0; v < VALUES; ++v) {
                whole &= load_awaited(strip(m)[column + v][line], published.before(k, j) + place(m, v));
            }
        }
        return whole;
    };
    if (goes_on) {
        while (!(load_part(known, published.columns(j, k)) & load_strips() & load_next(0))) __nanosleep(0);
        share(shared.right, known);
    } else {
        await(arrivals->before + j * MOST + k, START + 1);
        load_strips();
    }
    await_part(pivots, published.closed(k));
    share(shared.left, pivots);
    __syncthreads();
    for (int m = 0; m < count; ++m) {
        Wide values[VALUES];
#pragma unroll
        for (int v = 0; v < VALUES; ++v) values[v] = strip(m)[column + v][line];
        relax_strip<TILE>(values, shared.left, strip(m));
#pragma unroll
        for (int v = 0; v < VALUES; ++v) __stcg(published.after(k, j) + place(m, v), Element(values[v]));
        if (!goes_on) continue;
        auto& relaxed_strip = shared.relaxed[m % 2];
#pragma unroll
        for (int v = 0; v < VALUES; ++v) relaxed_strip[column + v][line] = values[v];
        __syncthreads();
        relax_strip<TILE>(next, shared.right, relaxed_strip);
#pragma unroll
        for (int v = 0; v < VALUES; ++v) __stcg(published.pivots(j) + place(m, v), told(Element(next[v])));
        while (m + 1 < count && !load_next(m + 1)) __nanosleep(0);
    }
    finish_stores();
    announce(arrivals->after + j * MOST + k, count);
}

// Computes tile (i, j) after stage k as its owner.
__device__ __forceinline__ void pass_tile(Own& own, Arrivals* arrivals, const Published& published, int k, int i, int j,
                                          Shared& shared) {
    if (i != k) {
        Own known;
        if (j != k) {
            if (i != k + 1) await(arrivals->columns + i * MOST + k, START + 1);
            await_part(known, published.columns(i, k));
            share(shared.left, known);
        } else {
            share(shared.left, own);
        }
    }
    Own known;
    if (j == k) {
        await_part(known, published.closed(k));
    } else {
        await(arrivals->after + j * MOST + k, START + STRIPS);
        load_part(known, published.after(k, j));
    }
    if (i == k) {
        memcpy(own, known, sizeof own);
        return;
    }
    share(shared.right, known);
    __syncthreads();
    relax_tile(own, shared.left, shared.right);
    __syncthreads();  // no thread reads `shared` any more
}

// Publishes tile (i, j) after stage k, if another block needs it.
__device__ __forceinline__ void publish(const Own& own, Arrivals* arrivals, const Published& published, int k, int i,
                                        int j) {
    if (i == j && i == k + 2) return store_part(published.before(i, j), own);
    const bool is_row = i == k + 1, is_column = j == k + 1;
    if (is_row == is_column) return;
    store_part(is_row ? published.before(i, j) : published.columns(i, j), own);
    if ((is_row ? j : i) == k + 2) return;  // the tile tells by itself that it is there
    finish_stores();
    announce(is_row ? arrivals->before + j * MOST + i : arrivals->columns + i * MOST + j);
}

// arrivals: `Arrivals`, followed by the published tiles.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_small(Element* d, long long stride, int n, double tolerance, Arrivals* arrivals) {
    __shared__ alignas(16) Shared shared;
    const int tiles = (n + TILE - 1) / TILE;
    const unsigned count = tiles * tiles;
    const Published published{(Element*)(arrivals + 1), tiles};
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) arrive(&arrivals->multiprocessor, multiprocessor() + 1);
        for (int k = 0; k < tiles; ++k) close_next(d, stride, n, tolerance, published, k);
        return;
    }
    const unsigned first = first_tile(arrivals, START, count, shared.first), step = min(gridDim.x - 1, count);
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
