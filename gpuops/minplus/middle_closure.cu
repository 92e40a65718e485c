// Closes a matrix d (n, n) of middle size in place, in one launch: like small_closure.cu, but with larger tiles, whose
// products are as fast as those of product.cu. Stage k has TILE pivots, and computes for each tile of TILE_ROWS x TILE_WORDS
//
//     new d[k,J] = min(d[k,J], d*[k,k] (x) d[k,J])     in the rows of the pivots; d*[k,k] is closed already
//     d[I,J] = min(d[I,J], d[I,k] (x) new d[k,J])      in all other rows
//
// The first block, the *closer*, closes d[k,k], and computes d[k+1,k+1] after stage k by itself, while the other blocks
// still compute stage k. Each tile has an owner, which keeps it in registers for the whole launch. The owners of a column
// of tiles compute new d[k,J] together, by strips.
//
// There is no barrier of the grid: a block waits for the counts of arrivals of what it reads. Data is published into a
// place that no other stage uses, so blocks never race:
//
//     pivots[k]       d[k,k] after stage k - 2, for the closer
//     closed[k]       d*[k,k]
//     before[k][J]    d[k,J] before stage k
//     after[k][J]     new d[k,J], a panel of B of product_tile.cuh
//     columns[k][I]   d[I,k] before stage k, a panel of A; in the rows of the pivots it has 0 on the diagonal, else
//                     infinity. The owners of these rows set them to infinity first: the product then is new d[k,J].
//
// Launch: cooperative, two blocks on every multiprocessor. A row of the matrix has at least two tiles. Without the closer's
// multiprocessor, there must be tiles * ceil(tiles / 2), for `tiles` tiles in a row.
// Macros: BLOCKS, and the macros of closure_tile.cuh and product_tile.cuh, for words of one element.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "product_tile.cuh"
#include "tile_owners.cuh"

constexpr int MOST = 16;  // tiles in a row of a matrix, at most
static_assert(TILE_ROWS == 2 * TILE && TILE_WORDS == 2 * TILE && LANES == 1, "a tile has the pivots of two stages");
static_assert(VALUES == 1 && BLOCKS == 2, "as relax_strips and first_step assume");
// A unit of new d[k,J]: the columns that a block computes at a time.
constexpr int UNIT = 2 * OWN, UNITS = TILE_WORDS / UNIT;

// Counts of arrivals, 0 before a launch. Arrays of tiles are [MOST][2 * MOST], by the tile and the stage.
struct Arrivals {
    unsigned closer;  // 1 + the number of the closer's multiprocessor
    unsigned ranked;  // other multiprocessors of which a block has begun
    unsigned unused[30];
    unsigned begun[256];              // blocks of a multiprocessor
    unsigned ranks[256];              // 1 + its rank among them
    unsigned pivots[32], closed[32];  // 1
    unsigned before[512];             // [J][k]: 1
    unsigned after[512];              // [J][k]: UNITS
    unsigned columns[512];            // [I][k]: 1
};

// The same number, of which the compiler does not know that it is the same. So it computes what follows from the number
// where it is used; otherwise that would take registers during the whole launch.
__device__ inline unsigned fresh(unsigned number) {
    unsigned same;
    asm volatile("mov.u32 %0, %1;" : "=r"(same) : "r"(number));
    return same;
}
__device__ inline unsigned thread() {
    return fresh(threadIdx.x);
}

struct Published {
    Element* first;
    int n;

    __device__ int tiles() const { return (fresh(n) + TILE_ROWS - 1) / TILE_ROWS; }
    __device__ int stages() const { return (fresh(n) + TILE - 1) / TILE; }

    // Pieces of TILE x TILE_WORDS elements. Each stage has PIECES.
    static constexpr int PIECES = 3 * MOST + 1;
    struct Piece {
        Element* first;
        unsigned offset;  // in elements: one register where a pointer would take two

        __device__ Element* operator+(unsigned elements) const {
            return (Element*)((char*)first + (offset + elements) * (unsigned)sizeof(Element));
        }
    };
    __device__ Piece piece(int k, int number) const {
        return {first, (unsigned)(k * PIECES + number) * (TILE * TILE_WORDS)};
    }
    __device__ Piece before(int k, int j) const { return piece(k, j); }
    __device__ Piece after(int k, int j) const { return piece(k, MOST + j); }
    __device__ Piece columns(int i, int k) const { return piece(k, 2 * MOST + i); }
    __device__ Element* pivots(int k) const { return piece(k, 3 * MOST) + 0; }
    __device__ Element* closed(int k) const { return pivots(k) + TILE * TILE; }
};

union Shared {
    Slabs slabs;
    struct {
        Tile left, right;
        PivotLines lines;
    } closer;
    struct {
        Tile closed;
        Wide strips[TILE_WORDS / 2][TILE + 4];  // columns, transposed
    } owner;
    unsigned first;
};

using Product = Word[THREAD_ROWS][THREAD_WORDS];

struct alignas(16) Group {
    Word words[GROUP];
};

// The half of the tile that has a thread's row r; its words likewise.
__device__ inline int half_of(int r) {
    return r / GROUP;
}

// Stage k of tile (i, j), in one register, because the tile takes most of them.
struct Step {
    unsigned packed;

    __device__ static Step of(int i, int j) { return {(unsigned)(i << 8 | j)}; }
    __device__ Step next() const { return {packed + (1 << 16)}; }
    __device__ void unpack(int& k, int& i, int& j) const {
        const unsigned number = fresh(packed);
        k = number >> 16, i = number >> 8 & 0xff, j = number & 0xff;
    }
};

// Calls visit(entry, word, is_inside) for a thread's words of tile (i, j) of d.
template <class Visit>
__device__ __forceinline__ void for_words(Product& tile, Element* d, long long stride, int n, Step step, Visit visit) {
    int k, i, j;
    step.unpack(k, i, j);
    const Place own = place_in_tile(thread());
    const int row = i * TILE_ROWS + row_in_tile(0, own.ty), column = j * TILE_WORDS + word_in_tile(0, own.tx);
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
        const int down = row_in_tile(r, 0);
        Element* line = d + (row + down) * stride + column;
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; ++w) {
            const int across = word_in_tile(w / GROUP * GROUP, 0) + w % GROUP;
            visit(line + across, tile[r][w], max(row + down, column + across) < n);
        }
    }
}

// A thread's part of a tile that is published, with all bytes at multiples of 16.
__device__ inline void load_published(Own& own, const Element* tile, int stride) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        Neighbours row;
        row.bits[0] = __ldcg((const Bits*)(tile + (own_row() + r) * stride + own_column()));
        static_assert(ACCESSES == 1, "a row of a thread is one access");
#pragma unroll
        for (int s = 0; s < OWN; ++s) own[r][s] = row.elements[s];
    }
}

// Thread `number` of a block waits, before a barrier of the block.
__device__ inline void wait_as(int number, const unsigned* arrived, unsigned expected = 1) {
    if (threadIdx.x == number) wait_for_arrivals(arrived, expected);
}

// The closer's work. A diagonal entry d[i][i] counts as min(d[i][i], 0).
__device__ __forceinline__ void close_pivots(Element* d, long long stride, int n, double tolerance, Arrivals* arrivals,
                                             const Published& published, Shared& shared) {
    auto& [left, right, lines] = shared.closer;
    Own own;
    load_own(own, d, stride, n, n);
    for (int k = 0;; ++k) {
        if (own_row() == own_column()) {
#pragma unroll
            for (int r = 0; r < OWN; ++r) own[r][r] = shorter(own[r][r], Wide(0));
        }
        close_tile(own, TILE, tolerance, lines);
        store_own(published.closed(k), TILE, TILE, TILE, own);
        finish_stores();
        announce(arrivals->closed + k);
        const int next = k + 1, tile = next / 2, half = next % 2 * TILE;
        if (next == published.stages()) return;
        share(left, own);
        wait_as(0, arrivals->before + tile * 2 * MOST + k);
        wait_as(32, arrivals->columns + tile * 2 * MOST + k);
        wait_as(64, arrivals->pivots + next);
        __syncthreads();
        Own row, column;
        load_published(row, published.before(k, tile) + half, TILE_WORDS);
        load_published(column, published.columns(tile, k) + half, TILE_ROWS);
        load_published(own, published.pivots(next), TILE);
        share(right, row);
        __syncthreads();
        relax_tile(row, left, right);
        __syncthreads();  // no thread reads `left` and `right` any more
        share(right, row);
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
#pragma unroll
            for (int s = 0; s < OWN; ++s) left[own_column() + s][own_row() + r] = column[r][s];
        }
        __syncthreads();
        relax_tile(own, left, right);  // the barriers of `close_tile` follow
    }
}

// The number of groups of `tiles` multiprocessors that have the same one or two columns of tiles.
__device__ inline int column_groups(int tiles) {
    return min(tiles, ((int)gridDim.x / BLOCKS - 1) / tiles);
}

// The tile that a block owns; in column `tiles` if none. Each multiprocessor but the closer's gets a tile, or two of the
// same row. Owners of one column wait for each other: they all share their multiprocessors with owners of the same other
// column, or none of them does.
__device__ inline Step first_step(Arrivals* arrivals, int tiles) {
    const unsigned own = multiprocessor(), groups = column_groups(tiles);
    wait_for_arrivals(&arrivals->closer, 1);
    if (__ldcg(&arrivals->closer) == own + 1) return Step::of(0, tiles);
    const bool second = atomicAdd(arrivals->begun + own, 1u);
    if (!second) arrive(arrivals->ranks + own, atomicAdd(&arrivals->ranked, 1u) + 1);
    wait_for_arrivals(arrivals->ranks + own, 1);
    const unsigned rank = __ldcg(arrivals->ranks + own) - 1, group = rank / tiles;
    const unsigned column = group < groups ? group + second * groups : tiles;
    return Step::of(rank % tiles, min(column, (unsigned)tiles));
}

// Computes units of new d[k,j] as the owner of tile (i, j).
__device__ __forceinline__ void relax_strips(Arrivals* arrivals, const Published& published, Step step,
                                             Shared& shared) {
    int k, i, j;
    step.unpack(k, i, j);
    const unsigned me = thread(), tiles = published.tiles(), column = me % OWN, line = me / OWN;
    auto& [closed, strips] = shared.owner;
    wait_as(0, arrivals->closed + k);
    wait_as(32, arrivals->before + j * 2 * MOST + k);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < TILE * TILE; c += THREADS * GROUP) {
        const unsigned at = c + me * GROUP;
        copy_16_bytes(&closed[at / TILE][at % TILE], published.closed(k) + at);
    }
    unsigned count = 0;
#pragma unroll 1
    for (unsigned unit = i; unit < UNITS; unit += tiles, ++count) {
#pragma unroll
        for (int s = 0; s < UNIT; s += OWN) {
            const unsigned from = line * TILE_WORDS + unit * UNIT + s + column;
            copy_word<sizeof(Word)>(&strips[count * UNIT + s + column][line], published.before(k, j) + from);
        }
    }
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll 1
    for (unsigned m = 0; m < count; ++m) {
#pragma unroll
        for (int s = 0; s < UNIT; s += OWN) {
            const unsigned to = (i + m * tiles) * UNIT + s + column;
            const int pivot = (int)to - k % 2 * TILE;
            Wide value[VALUES] = {strips[m * UNIT + s + column][line]};
            relax_strip<1>(value, closed, strips + m * UNIT + s);
            if (j == k / 2 && pivot >= 0 && pivot < TILE) value[0] = closed[line][pivot];
            __stcg(published.after(k, j) + line * TILE_WORDS + to, Element(value[0]));
        }
    }
    finish_stores();
    announce(arrivals->after + j * 2 * MOST + k, count);
}

// Computes tile (i, j) after stage k as its owner.
__device__ __forceinline__ void pass_tile(Product& tile, Arrivals* arrivals, const Published& published, Step step,
                                          Shared& shared) {
    int k, i, j;
    step.unpack(k, i, j);
    wait_as(0, arrivals->after + j * 2 * MOST + k, UNITS);
    wait_as(32, arrivals->columns + i * 2 * MOST + k);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < THREAD_ROWS; ++r) {
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; ++w) {
            if (2 * i + half_of(r) == k) tile[r][w] = infinity<Element>();
        }
    }
    relax_by_slabs(tile, published.columns(i, k), published.after(k, j), TILE / SLAB, shared.slabs,
                   place_in_tile(thread()));
}

// Publishes tile (i, j) after stage k - 1, as far as other blocks need it.
__device__ __forceinline__ void publish(const Product& tile, Arrivals* arrivals, const Published& published,
                                        Step step) {
    int k, i, j;
    step.unpack(k, i, j);
    const Place own = place_in_tile(thread());
    if (k == published.stages()) return;
    const bool is_row = i == k / 2, is_column = j == k / 2;
    const bool is_pivot = i == j && i == (k + 1) / 2 && k + 1 < published.stages();
    if (is_row) {
        const int half = k % 2;
#pragma unroll
        for (int r = 0; r < THREAD_ROWS; ++r) {
#pragma unroll
            for (int w = 0; w < THREAD_WORDS; w += GROUP) {
                if (half_of(r) != half) continue;
                Group group;
#pragma unroll
                for (int g = 0; g < GROUP; ++g) group.words[g] = tile[r][w + g];
                const int row = own.ty * GROUP + r % GROUP;
                *(Group*)(published.before(k, j) + row * TILE_WORDS + word_in_tile(w, own.tx)) = group;
            }
        }
        finish_stores();
        announce(arrivals->before + j * 2 * MOST + k);
    }
    if (!is_column && !is_pivot) return;
    if (is_pivot) {
        const int half = (k + 1) % 2;
#pragma unroll
        for (int r = 0; r < THREAD_ROWS; ++r) {
#pragma unroll
            for (int w = 0; w < THREAD_WORDS; w += GROUP) {
                if (half_of(r) != half || half_of(w) != half) continue;
                Group group;
#pragma unroll
                for (int g = 0; g < GROUP; ++g) group.words[g] = tile[r][w + g];
                const int row = own.ty * GROUP + r % GROUP, word = own.tx * GROUP;
                *(Group*)(published.pivots(k + 1) + row * TILE + word) = group;
            }
        }
    }
    if (is_column) {
        const int half = k % 2;
#pragma unroll
        for (int w = 0; w < THREAD_WORDS; ++w) {
#pragma unroll
            for (int r = 0; r < THREAD_ROWS; r += GROUP) {
                if (half_of(w) != half) continue;
                const int column = own.tx * GROUP + w % GROUP;
                Group group;
#pragma unroll
                for (int g = 0; g < GROUP; ++g) {
                    const bool is_diagonal = own.ty * GROUP + g == column;
                    group.words[g] = !(i == j && half_of(r) == half) ? tile[r + g][w]
                                     : is_diagonal                   ? Element(0)
                                                                     : infinity<Element>();
                }
                *(Group*)(published.columns(i, k) + column * TILE_ROWS + row_in_tile(r, own.ty)) = group;
            }
        }
    }
    finish_stores();
    if (is_pivot) announce(arrivals->pivots + k + 1);
    if (is_column) announce(arrivals->columns + i * 2 * MOST + k);
}

// arrivals: `Arrivals`, followed by what blocks publish.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_middle(Element* d, long long stride, int n, double tolerance, Arrivals* arrivals) {
    __shared__ alignas(16) Shared shared;
    const Published published{(Element*)(arrivals + 1), n};
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) arrive(&arrivals->closer, multiprocessor() + 1);
        return close_pivots(d, stride, n, tolerance, arrivals, published, shared);
    }
    if (threadIdx.x == 0) shared.first = first_step(arrivals, published.tiles()).packed;
    __syncthreads();
    Step step{shared.first};
    if ((int)(step.packed & 0xff) >= published.tiles()) return;
    Product tile;
    for_words(tile, d, stride, n, step, [](Element* entry, Word& word, bool is_inside) {
        word = ARITHMETIC::broadcast(is_inside ? __ldcg(entry) : infinity<Element>());
    });
    publish(tile, arrivals, published, step);
    while ((int)(step.packed >> 16) < published.stages()) {
        relax_strips(arrivals, published, step, shared);
        pass_tile(tile, arrivals, published, step, shared);
        step = step.next();
        publish(tile, arrivals, published, step);
    }
    for_words(tile, d, stride, n, step, [](Element* entry, Word word, bool is_inside) {
        if (is_inside) __stcg(entry, word);
    });
}
