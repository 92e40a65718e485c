// What this GPU can do at its present clock: issue rates of min-plus instructions, bandwidth of shared memory.
//
//     issue         registers only. A thread keeps CHAINS words in a ring, and each is relaxed with its neighbours,
//                   which nothing can simplify: w[i] = min(w[i], w[i + 1] + b). So many independent chains, in as many
//                   threads as a multiprocessor holds, hide every latency; what is left is the rate at which
//                   instructions issue.
//     load_shared   16-byte loads, each from the address that the one before it gave
//
// `clocks` gets {cycles, nanoseconds} of every block: their ratio is the clock of the multiprocessors under this load.
//
// Launch: as many blocks of THREADS threads as the GPU holds at once, BLOCKS on every multiprocessor.
// Macros: THREADS; BLOCKS; MIX, one of the structs below.
//
// Instructions per relaxation as compiled for sm_90, and the relaxations per clock and multiprocessor that they allow,
// where 128 instructions issue, up to 64 of them minima and up to 64 of them IMAD:
//
//     MIX                  instructions                              each   relaxations
//     Float32              FADD, FMNMX                               2      64, by issue and by minima
//     NonnegativeFloat32   2 FADD, VIMNMX3                           3/2    85, by issue
//     Int32                VIADDMNMX                                 1      64, by minima
//     Int32Blend           VIADDMNMX, 2 IMAD, VIMNMX3                4/3    96, by all three
//     Int16                VIADDMNMX.S16x2                           1/2    128, by minima
//     Int16Blend           VIADDMNMX.S16x2, 2 IMAD, VIMNMX3.S16x2    2/3    192, by all three
//     Float64              DADD, DSETP, 2 FSEL                       4      not documented

// UNROLL makes loops of about 512 instructions: the loop itself hardly counts, and caches hold it.
struct Float32 {
    using Word = float;
    static constexpr int UNROLL = 256;
    static __device__ void relax(Word& w, Word a0, Word, Word, const Word* b, int) { w = fminf(w, a0 + b[0]); }
};

// For floats from +0.0 to +inf the order of the bits, read as integers, is the order of the numbers.
struct NonnegativeFloat32 {
    using Word = float;
    static constexpr int UNROLL = 128;
    static __device__ void relax(Word& w, Word a0, Word a1, Word, const Word* b, int) {
        w = __int_as_float(__vimin3_s32(__float_as_int(w), __float_as_int(a0 + b[0]), __float_as_int(a1 + b[1])));
    }
};

struct Int32 {
    using Word = int;
    static constexpr int UNROLL = 512;
    static __device__ void relax(Word& w, Word a0, Word, Word, const Word* b, int) { w = __viaddmin_s32(a0, b[0], w); }
};

// `one` is 1, which the compiler does not know: it has to multiply by it, and cannot fuse the addition with a minimum.
struct Int32Blend {
    using Word = int;
    static constexpr int UNROLL = 128;
    static __device__ void relax(Word& w, Word a0, Word a1, Word a2, const Word* b, int one) {
        w = __vimin3_s32(w, a0 * one + b[0], a1 * one + b[1]);
        w = __viaddmin_s32(a2, b[0], w);
    }
};

struct Int16 {
    using Word = unsigned;
    static constexpr int UNROLL = 512;
    static __device__ void relax(Word& w, Word a0, Word, Word, const Word* b, int) {
        w = __viaddmin_s16x2(a0, b[0], w);
    }
};

// One 32-bit addition adds a pair as long as the lower sum stays below 2^16, as it does for distances >= 0.
struct Int16Blend {
    using Word = unsigned;
    static constexpr int UNROLL = 128;
    static __device__ void relax(Word& w, Word a0, Word a1, Word a2, const Word* b, int one) {
        w = __vimin3_s16x2(w, a0 * one + b[0], a1 * one + b[1]);
        w = __viaddmin_s16x2(a2, b[0], w);
    }
};

struct Float64 {
    using Word = double;
    static constexpr int UNROLL = 128;
    static __device__ void relax(Word& w, Word a0, Word, Word, const Word* b, int) {
        const Word sum = a0 + b[0];
        w = sum < w ? sum : w;
    }
};

constexpr int CHAINS = 8;

__device__ inline long long nanoseconds() {
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// seeds (32 + CHAINS + 1): values >= 0. steps: calls of MIX::relax in a thread, a multiple of what the loop unrolls.
// results: one word per thread, so that nothing is computed in vain.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    issue(const MIX::Word* seeds, int one, int steps, MIX::Word* results, long long* clocks) {
    seeds += threadIdx.x % 32;
    MIX::Word w[CHAINS], b[2] = {seeds[CHAINS], seeds[CHAINS + 1]};
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) w[i] = seeds[i];

    __syncthreads();
    const long long cycles = clock64(), time = nanoseconds();
#pragma unroll 1
    for (int turn = 0; turn < steps / MIX::UNROLL; ++turn) {
#pragma unroll
        for (int step = 0; step < MIX::UNROLL; ++step) {
            const int i = step % CHAINS;
            MIX::relax(w[i], w[(i + 1) % CHAINS], w[(i + 2) % CHAINS], w[(i + 3) % CHAINS], b, one);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        clocks[2 * blockIdx.x] = clock64() - cycles;
        clocks[2 * blockIdx.x + 1] = nanoseconds() - time;
    }
    MIX::Word sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += w[i];
    results[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// A thread loads 16 bytes `steps` times, a multiple of 16; neighbours load side by side.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) load_shared(int steps, int* results, long long* clocks) {
    __shared__ int4 next[THREADS];
    next[threadIdx.x] = make_int4(threadIdx.x, 0, 0, 0);
    int at = threadIdx.x;

    __syncthreads();
    const long long cycles = clock64(), time = nanoseconds();
#pragma unroll 1
    for (int turn = 0; turn < steps / 16; ++turn) {
#pragma unroll
        for (int load = 0; load < 16; ++load) {
            const int4 found = next[at];
            at = found.x ^ found.y ^ found.z ^ found.w;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        clocks[2 * blockIdx.x] = clock64() - cycles;
        clocks[2 * blockIdx.x + 1] = nanoseconds() - time;
    }
    results[blockIdx.x * THREADS + threadIdx.x] = at;
}
