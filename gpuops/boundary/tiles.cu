// Rows of distances from parts of large boundaries, by two ragged batches of min-plus products, each in one launch. What
// boundary.cu does for small ones; here the arithmetic counts, more than how the result is stored.
//
//     pack_a, pack_b   copy columns of a table into panels as wide as a tile, filled up with infinity
//     depart           onward[s, :] = to_boundary[I, s, :] (x) among[B(I), :]       for sources s of parts I
//     arrive           out[s, t] = onward[s, B(J)] (x) from_boundary[J, :, t]       for targets t of parts J,
//                      and at most inner[I, s, t] where J = I
//
// Columns of products are sorted by part, and no tile has columns of two parts: its depth is the boundary of one, a range
// of rows of the other factor. `depart` computes onward transposed, sources being its columns, and writes the panels that
// `arrive` reads. Neither reads what it writes, and no result exceeds infinity.
//
//     among  [S / TILE_ROWS][depth][TILE_ROWS]           depth: S and a slab more, since the last one may reach beyond
//     onward [sources / TILE_ROWS][depth][TILE_ROWS]
//     departure, arrival [tiles][part_depth][TILE_WORDS] part_depth: the largest boundary in whole slabs
//
// Launch: said at each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; THREAD_TILE; THREADS, of a block of `depart` and `arrive`.

#include "../minplus/product_tile.cuh"

constexpr int PACK_WORDS = 32, PACK_DEPTH = 8;

// Column `places[c]` of the table of the part of its tile; -1 is a column that is not there.
template <bool BROADCAST>
__device__ inline void pack(Word* panels, const Element* table, long long part_stride, long long place_stride,
                            long long depth_stride, const int* tile_part, const int* places, int rows, int depth) {
    constexpr int COLUMNS = BROADCAST ? 1 : LANES, WIDTH = BROADCAST ? TILE_ROWS : TILE_WORDS;
    const int word = blockIdx.x * PACK_WORDS + threadIdx.x, k = blockIdx.y * PACK_DEPTH + threadIdx.y;
    if (k >= depth) return;
    const int tile = word / WIDTH;
    table += tile_part[tile] * part_stride + k * depth_stride;
    Element x[LANES];
    for (int c = 0; c < COLUMNS; ++c) {
        const int place = places[word * COLUMNS + c];
        x[c] = place >= 0 && k < rows ? table[place * place_stride] : infinity<Element>();
    }
    panels[((long long)tile * depth + k) * WIDTH + word % WIDTH] =
        BROADCAST ? ARITHMETIC::broadcast(x[0]) : ARITHMETIC::pack(x);
}

// Launch of both: grid (words of all panels / PACK_WORDS, depth / PACK_DEPTH rounded up), PACK_WORDS x PACK_DEPTH threads.
extern "C" __global__ void pack_a(Word* panels, const Element* table, long long part_stride, long long place_stride,
                                  long long depth_stride, const int* tile_part, const int* places, int rows,
                                  int depth) {
    pack<true>(panels, table, part_stride, place_stride, depth_stride, tile_part, places, rows, depth);
}
extern "C" __global__ void pack_b(Word* panels, const Element* table, long long part_stride, long long place_stride,
                                  long long depth_stride, const int* tile_part, const int* places, int rows,
                                  int depth) {
    pack<false>(panels, table, part_stride, place_stride, depth_stride, tile_part, places, rows, depth);
}

// A warp has 4 rows of a group, each of so many neighbours. Through shared memory every lane gets a column of them, so
// that a store covers neighbours of one row, wherever they go.
constexpr int SEGMENT = 8 * GROUP * LANES;
constexpr int COLUMNS_PER_LANE = SEGMENT > 32 ? SEGMENT / 32 : 1;
constexpr int STORES = 4 * SEGMENT / 32;

using Exchange = Element[THREADS / 32][4][SEGMENT];  // where the slabs were
static_assert(sizeof(Exchange) <= sizeof(Slabs), "shared memory is used twice");

struct alignas(16) Group {
    Element elements[GROUP * LANES];
};

// For a tile in registers: `columns(j)` reads what is known of a column of the tile, j; `store(r, y, column, x)` the
// entry of row y of the warp's four in row r of its threads.
template <class Columns, class Store>
__device__ inline void store_tile(Word (&tile)[THREAD_TILE][THREAD_TILE], Slabs& slabs, Columns columns, Store store) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto& exchange = ((Exchange&)slabs)[warp];
#pragma unroll
    for (int w = 0; w < THREAD_TILE; w += GROUP) {
        decltype(columns(0)) known[COLUMNS_PER_LANE];
#pragma unroll
        for (int v = 0; v < COLUMNS_PER_LANE; ++v) {
            known[v] = columns(word_in_tile(w, warp % 2 * 8) * LANES + (v * 32 + lane) % SEGMENT);
        }
#pragma unroll
        for (int r = 0; r < THREAD_TILE; ++r) {
            Group group;
#pragma unroll
            for (int g = 0; g < GROUP; ++g) ARITHMETIC::unpack(group.elements + g * LANES, tile[r][w + g]);
            *(Group*)&exchange[lane / 8][lane % 8 * GROUP * LANES] = group;
            __syncwarp();
#pragma unroll
            for (int t = 0; t < STORES; ++t) {
                const int y = (t * 32 + lane) / SEGMENT, x = (t * 32 + lane) % SEGMENT;
                store(r, y, known[t % COLUMNS_PER_LANE], exchange[y][x]);
            }
            __syncwarp();
        }
    }
}

// The tile of a product whose depth is the boundary of a part. When it returns, the memory of the slabs is free.
__device__ inline void part_product(Word (&tile)[THREAD_TILE][THREAD_TILE], const Word* a, const Word* b,
                                    const int* starts, int part, Slabs& slabs, Place own) {
    const int first = starts[part], count = (starts[part + 1] - first + SLAB - 1) / SLAB;
    product_tile(tile, a + (long long)first * TILE_ROWS, b, count, slabs, own);
    __syncthreads();  // product_tile reads beyond the last slab, though it uses nothing of that
}

// Launch: grid (tiles of columns, depth / TILE_ROWS rounded up), THREADS threads. `columns` says which source each is.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    depart(Word* onward, int depth, const Word* among, const Word* departure, int part_depth, const int* tile_part,
           const int* starts, const int* columns) {
    __shared__ Slabs slabs;
    const Place own = place_in_tile();
    Word tile[THREAD_TILE][THREAD_TILE];
    part_product(tile, among + (long long)blockIdx.y * depth * TILE_ROWS,
                 departure + (long long)blockIdx.x * part_depth * TILE_WORDS, starts, tile_part[blockIdx.x], slabs,
                 own);
    const int i0 = blockIdx.y * TILE_ROWS, ty = threadIdx.x / 64 * 4;
    columns += (long long)blockIdx.x * TILE_WORDS * LANES;
    store_tile(
        tile, slabs, [&](int j) { return columns[j]; },
        [&](int r, int y, int source, Element x) {
            const int i = i0 + row_in_tile(r, ty + y);
            if (source < 0 || i >= depth) return;
            onward[((long long)(source / TILE_ROWS) * depth + i) * TILE_ROWS + source % TILE_ROWS] =
                ARITHMETIC::broadcast(x);
        });
}

// Launch: a block of THREADS threads for each tile; all tiles of some rows, `across` of them, and then of the next.
// Entry (i, j) goes to out[rows[i], columns[j]].
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    arrive(Element* out, long long stride, int m, const int* rows, const int* row_part, const int* row_place,
           const Word* onward, int depth, const Word* arrival, int part_depth, const int* tile_part, const int* starts,
           int across, const int* columns, const int* column_place, const Element* inner, int size) {
    __shared__ Slabs slabs;
    const Place own = place_in_tile();
    const int tile_i = blockIdx.x / across, tile_j = blockIdx.x % across;
    Word tile[THREAD_TILE][THREAD_TILE];
    part_product(tile, onward + (long long)tile_i * depth * TILE_ROWS,
                 arrival + (long long)tile_j * part_depth * TILE_WORDS, starts, tile_part[tile_j], slabs, own);
    // Each lane knows one of the warp's rows: where it goes, and its place if the tile is of its part.
    static_assert(4 * THREAD_TILE <= 32, "a row for each lane");
    const int lane = threadIdx.x % 32;
    const int i = tile_i * TILE_ROWS + row_in_tile(lane / 4 % THREAD_TILE, threadIdx.x / 64 * 4 + lane % 4);
    const int own_row = i < m ? rows[i] : -1;
    const int own_place = i < m && row_part[i] == tile_part[tile_j] ? row_place[i] : -1;
    struct Column {
        int target, place;
    };
    inner += (long long)tile_part[tile_j] * size * size;
    const long long first = (long long)tile_j * TILE_WORDS * LANES;
    store_tile(
        tile, slabs, [&](int j) { return Column{columns[first + j], column_place[first + j]}; },
        [&](int r, int y, Column column, Element x) {
            const int row = __shfl_sync(0xffffffff, own_row, 4 * r + y);
            const int place = __shfl_sync(0xffffffff, own_place, 4 * r + y);
            if (column.target < 0 || row < 0) return;
            if (place >= 0) x = shorter(x, inner[(long long)place * size + column.place]);
            out[row * stride + column.target] = x;
        });
}
