// Best matching units, the screen on tensor cores by warpgroups (sm_90a): what `screen_by_one` of screen_tensor.cu
// computes, the least score of every tile of units, for every sample, with one half product for a score.
//
// A block takes 256 samples at a time and goes through its part of the map, two tiles (128 units) at a time, or three
// tiles if there are several slabs, because shared memory is then filled more slowly than it could be multiplied. One warp
// only copies: the units, and with several slabs the samples, in stages through shared memory. Two warpgroups multiply,
// each 2 x 64 of the samples, which are operand A: in registers if there is one slab, else in shared memory. While the
// tensor cores multiply one half of a warpgroup's samples, the warpgroup finds the least scores of the other half.
//
// Blocks stay until no work is left: they take every gridDim.x-th piece, a piece being 256 samples and a part of the map.
//
// Features come from pack.cu, as halves.cuh describes: core matrices, in the order that the multiplication wants in shared
// memory. Sums stay in the accumulators over all slabs.
//
// Launch: blocks that stay, THREADS threads, SHARED bytes of shared memory; a part of the map is `share_of_one` tiles, a
//         multiple of TILES.
// Macros: KSTEPS, steps of 16 dimensions in a slab, 1 to 5; DEEP, 0 if there is one slab, else 1; STAGES, in shared
//         memory; THREADS, the threads of a block, 32 more than ROWS.

#include "../device/bulk_copy.cuh"
#include "halves.cuh"
#include "search.cuh"

[[maybe_unused]] constexpr int TILE = 64;
constexpr int ROWS = 256, GROUP = 128;  // GROUP: threads and samples of a warpgroup
constexpr int SLAB = 16 * KSTEPS, CHUNKS = 2 * KSTEPS;
constexpr int BLOCK = BLOCK_ROWS * CHUNKS;                                          // chunks of 64 rows, one slab
constexpr int TILES = DEEP ? 3 : 2;                                                 // of units, multiplied at a time
constexpr int SUMS = TILES * TILE / 2;                                              // of a thread, for 64 samples
constexpr int OF_UNITS = TILES * BLOCK, STAGE = OF_UNITS + (DEEP ? 4 : 0) * BLOCK;  // chunks; samples follow the units

struct alignas(128) Matrix {
    Chunk rows[8];
};

// Describes core matrices in shared memory: two neighbours along the dimensions are 128 bytes apart, two neighbours
// along the rows CHUNKS times as far.
__device__ inline unsigned long long describe(const Chunk* matrices) {
    constexpr unsigned long long ALONG_DIMENSIONS = 128 / 16, ALONG_ROWS = CHUNKS * 128 / 16;
    return (shared_address(matrices) & 0x3ffff) >> 4 | ALONG_DIMENSIONS << 16 | ALONG_ROWS << 32;
}
constexpr unsigned long long NEXT_STEP = 2 * 128 / 16;  // from a description to that of the next 16 dimensions

#if !DEEP
// sums (64 x 128) = (add ? sums : 0) + a (64 x 16) b (16 x 128), by a warpgroup, some time before `wait_for_products`.
__device__ inline void multiply(float (&s)[64], const unsigned (&a)[4], unsigned long long b, bool add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %69, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, p, 1, 1, 0;}"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]),
          "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]),
          "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]),
          "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]), "+f"(s[32]),
          "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]),
          "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]),
          "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]),
          "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}

#else
// The same for 192 units, with the samples in shared memory, too.
__device__ inline void multiply(float (&s)[96], unsigned long long a, unsigned long long b, bool add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %98, 0; "
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
        "%96, %97, p, 1, 1, 0, 0;}"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]),
          "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]),
          "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]),
          "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]), "+f"(s[32]),
          "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]),
          "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]),
          "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]),
          "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63]), "+f"(s[64]),
          "+f"(s[65]), "+f"(s[66]), "+f"(s[67]), "+f"(s[68]), "+f"(s[69]), "+f"(s[70]), "+f"(s[71]), "+f"(s[72]),
          "+f"(s[73]), "+f"(s[74]), "+f"(s[75]), "+f"(s[76]), "+f"(s[77]), "+f"(s[78]), "+f"(s[79]), "+f"(s[80]),
          "+f"(s[81]), "+f"(s[82]), "+f"(s[83]), "+f"(s[84]), "+f"(s[85]), "+f"(s[86]), "+f"(s[87]), "+f"(s[88]),
          "+f"(s[89]), "+f"(s[90]), "+f"(s[91]), "+f"(s[92]), "+f"(s[93]), "+f"(s[94]), "+f"(s[95])
        : "l"(a), "l"(b), "r"((int)add));
}

#endif

// Keeps the compiler from moving what it does with the sums across this line.
__device__ inline void hold(float (&sums)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

__device__ inline void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ inline void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// A block's pieces of work. Deep samples pass through shared memory once for each pair of tiles. So that they come from the
// second-level cache, NEIGHBOURS x 256 samples go through the whole map before other samples do.
struct Pieces {
    static constexpr int NEIGHBOURS = 16;
    int blocks, groups, share, parts, count;

    __device__ explicit Pieces(const Search& s) {
        blocks = (int)((s.n + ROWS - 1) / ROWS);
        groups = (s.tiles + TILES - 1) / TILES;
        share = DEEP ? 1 : s.share_of_one / TILES;
        parts = (groups + share - 1) / share;
        count = blocks * parts;
    }
    // Returns the number of a piece's part of the map; `block` becomes the number of its 256 samples.
    __device__ int part(int piece, int& block) const {
        const int before = DEEP ? piece / (NEIGHBOURS * parts) * NEIGHBOURS : 0;
        const int together = DEEP ? min(NEIGHBOURS, blocks - before) : blocks, number = piece - before * parts;
        block = before + number % together;
        return number / together;
    }
    __device__ int first(int part) const { return part * share; }
    __device__ int last(int part) const { return min(part * share + share, groups); }
};

// Called by one thread: copies all stages.
__device__ inline void copy_stages(const Search& s, const Pieces& pieces, Chunk* stages, Barrier* full,
                                   Barrier* empty) {
    const int slabs = DEEP ? s.depth / SLAB : 1;
    const Chunk* const x = (const Chunk*)s.x;
    const Chunk* const w = (const Chunk*)s.w;
    unsigned step = 0;
    for (int piece = blockIdx.x; piece < pieces.count; piece += gridDim.x) {
        int block_of_samples;
        const int part = pieces.part(piece, block_of_samples);
        for (int group = pieces.first(part); group < pieces.last(part); ++group) {
            // Tiles that do not exist are not copied, and their scores are not used; there are two or none without slabs.
            const int tiles = DEEP ? min(TILES, s.tiles - group * TILES) : TILES;
            for (int slab = 0; slab < slabs; ++slab, ++step) {
                const unsigned place = step % STAGES;
                Chunk* const stage = stages + place * STAGE;
                wait_for_phase(empty[place], step / STAGES % 2 ^ 1);
                arrive_and_announce(full[place], (STAGE - (TILES - tiles) * BLOCK) * sizeof(Chunk));
                const auto copy = [&](int at, const Chunk* from, long long block) {
                    copy_bulk(stage + at * BLOCK, from + (block * slabs + slab) * BLOCK, BLOCK * sizeof(Chunk),
                              full[place]);
                };
                for (int tile = 0; tile < tiles; ++tile) copy(tile, w, (long long)group * TILES + tile);
                for (int block = 0; DEEP && block < 4; ++block) {
                    copy(TILES + block, x, 4ll * block_of_samples + block);
                }
            }
        }
    }
}

// Writes the least scores of 64 samples and a group of tiles, of which a warp has 16 rows.
__device__ inline void write_least(const Search& s, const float (&sums)[SUMS], long long first_sample, int group) {
    const int lane = threadIdx.x % 32;
    float best[TILES][2];  // of either tile, of row lane / 4 and of row lane / 4 + 8
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float least = __int_as_float(0x7f800000);
#pragma unroll
            for (int i = tile * 32 + row * 2; i < tile * 32 + 32; i += 4) {
                least = fminf(least, fminf(sums[i], sums[i + 1]));
            }
            best[tile][row] = least;
        }
    }
    // Four lanes share the values of a row; two of them keep either row.
    const bool second_row = lane & 2, second_tile = lane & 1;
    float of_tile[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        const float given = second_row ? best[tile][0] : best[tile][1];
        const float kept = second_row ? best[tile][1] : best[tile][0];
        of_tile[tile] = fminf(kept, __shfl_xor_sync(0xffffffff, given, 2));
    }
    const long long i = first_sample + threadIdx.x % GROUP / 32 * 16 + second_row * 8 + lane / 4;
    const auto write = [&](int tile, float least) {
        if (i < s.n && tile < s.tiles) s.least[i * s.tiles + tile] = least;
    };
    // Two lanes share the two first tiles; in the end each lane holds one.
    const float given = second_tile ? of_tile[0] : of_tile[1], kept = second_tile ? of_tile[1] : of_tile[0];
    write(group * TILES + second_tile, fminf(kept, __shfl_xor_sync(0xffffffff, given, 1)));
    if constexpr (TILES > 2) {
        const float least = fminf(of_tile[2], __shfl_xor_sync(0xffffffff, of_tile[2], 1));
        if (!second_tile) write(group * TILES + 2, least);
    }
}

// Called by the warpgroup number `group`.
__device__ inline void multiply_stages(const Search& s, const Pieces& pieces, const Chunk* stages, Barrier* full,
                                       Barrier* empty, int group) {
    const int lane = threadIdx.x % 32;
    float sums[2][SUMS];
    unsigned step = 0;
    const auto leave = [&](unsigned step) {  // this warp does not read that stage any more
        if (lane == 0) arrive(empty[step % STAGES]);
    };
    for (int piece = blockIdx.x; piece < pieces.count; piece += gridDim.x) {
        int block;
        const int part = pieces.part(piece, block), first = pieces.first(part), last = pieces.last(part);
        const long long first_sample = (long long)block * ROWS + group * GROUP;
#if !DEEP
        unsigned a[2][KSTEPS][4];
        const long long group_of_rows = first_sample / BLOCK_ROWS * 8 + threadIdx.x % GROUP / 32 * 2;
        const unsigned* const words = (const unsigned*)s.x + group_of_rows * CHUNKS * 32 + lane;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    a[half][k][r] = words[((half * 8 + r % 2) * CHUNKS + 2 * k + r / 2) * 32];
                }
            }
        }
        const auto begin = [&](int half) {
            const unsigned long long units = describe(stages + step % STAGES * STAGE);
            hold(sums[half]);
            begin_products();
#pragma unroll
            for (int k = 0; k < KSTEPS; ++k) multiply(sums[half], a[half][k], units + k * NEXT_STEP, k > 0);
            commit_products();
        };
        wait_for_phase(full[step % STAGES], step / STAGES % 2);
        begin(0);
        for (int tiles = first; tiles < last - 1; ++tiles) {
            begin(1);
            wait_for_products<1>();  // for those of the other half
            hold(sums[0]);
            write_least(s, sums[0], first_sample, tiles);
            ++step;
            wait_for_phase(full[step % STAGES], step / STAGES % 2);
            begin(0);
            wait_for_products<1>();
            hold(sums[1]);
            leave(step - 1);
            write_least(s, sums[1], first_sample + BLOCK_ROWS, tiles);
        }
        begin(1);
        wait_for_products<0>();
        hold(sums[0]);
        hold(sums[1]);
        leave(step++);
        write_least(s, sums[0], first_sample, last - 1);
        write_least(s, sums[1], first_sample + BLOCK_ROWS, last - 1);
#else
        const int slabs = s.depth / SLAB;
        {
            hold(sums[0]);
            hold(sums[1]);
            for (int slab = 0; slab < slabs; ++slab, ++step) {
                wait_for_phase(full[step % STAGES], step / STAGES % 2);
                const Chunk* const stage = stages + step % STAGES * STAGE;
                const unsigned long long units = describe(stage);
                begin_products();
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const unsigned long long samples = describe(stage + OF_UNITS + (group * 2 + half) * BLOCK);
#pragma unroll
                    for (int k = 0; k < KSTEPS; ++k) {
                        multiply(sums[half], samples + k * NEXT_STEP, units + k * NEXT_STEP, slab + k > 0);
                    }
                }
                commit_products();
                if (slab) {
                    wait_for_products<1>();  // for the products of the slab before
                    leave(step - 1);
                }
            }
            wait_for_products<0>();
            leave(step - 1);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                hold(sums[half]);
                write_least(s, sums[half], first_sample + half * BLOCK_ROWS, first);
            }
        }
#endif
    }
}

// Launched for every chunk, before `screen_by_three` of screen_tensor.cu.
extern "C" __global__ void __launch_bounds__(THREADS, 1) screen_by_one(const Search s) {
    extern __shared__ Matrix matrices[];
    Chunk* const stages = matrices->rows;
    __shared__ Barrier full[STAGES], empty[STAGES];
    if (blockIdx.x == 0 && threadIdx.x < 2) s.kept[threadIdx.x] = 0;  // `pack` has read it
    if (*s.products != 1) return;
    const int group = __shfl_sync(0xffffffff, threadIdx.x / GROUP, 0);  // the same for a warp, as the compiler can see
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            make_barrier(full[stage], 1);
            make_barrier(empty[stage], ROWS / 32);  // each warp that multiplies
        }
        publish_barriers();
    }
    __syncthreads();
    const Pieces pieces(s);
    if (group == 2) {  // the registers of the warpgroup that copies go to the two that multiply
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (threadIdx.x == ROWS) copy_stages(s, pieces, stages, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        multiply_stages(s, pieces, stages, full, empty, group);
    }
}
