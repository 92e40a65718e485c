// The edges of pipelines.generators.RMat, bit for bit: a thread makes one, from its number and the seed alone.
//
//     starts, ends (count)   the smaller and the larger end
//     weights (count)        multiples of 2^-24 from (0, 1]
//     limits (3)             the sums a, a + b and a + b + c, times 2^32
//     scrambler (size)       as pipelines/generators/counter_random.py makes it
//
// Launch: a thread for every edge, in blocks of THREADS, a macro.
//
// J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10).

constexpr unsigned ENDS = 0, WEIGHT = 1;  // streams

struct Words {
    unsigned a, b, c, d;
};

__device__ inline Words draw(unsigned long long seed, unsigned stream, unsigned long long item, unsigned block) {
    Words w{(unsigned)item, (unsigned)(item >> 32), block, stream};
    unsigned key_0 = (unsigned)seed, key_1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long x = 0xD2511F53ull * w.a, y = 0xCD9E8D57ull * w.c;
        w = {(unsigned)(y >> 32) ^ w.b ^ key_0, (unsigned)y, (unsigned)(x >> 32) ^ w.d ^ key_1, (unsigned)x};
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
    return w;
}

__device__ inline unsigned long long scramble(unsigned long long x, const unsigned long long* scrambler, int size) {
    do {
        for (int k = 3; k < size; k += 2) {
            x = (x * scrambler[k] + scrambler[k + 1]) & scrambler[1];
            x ^= x >> scrambler[2];
        }
    } while (x >= scrambler[0]);
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rmat_edges(int* starts, int* ends, float* weights, long long first, long long count, unsigned long long seed,
               int scale, const unsigned long long* __restrict__ limits,
               const unsigned long long* __restrict__ scrambler, int size) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    unsigned long long u = 0, v = 0;
    const int blocks = (scale + 3) / 4;
    for (int block = 0; block < blocks; ++block) {
        const Words words = draw(seed, ENDS, first + i, block);
        const unsigned drawn[] = {words.a, words.b, words.c, words.d};
        for (const unsigned word : drawn) {
            const bool lower = word >= limits[1];
            const bool right = (word >= limits[0]) ^ lower ^ (word >= limits[2]);
            u = u << 1 | lower;
            v = v << 1 | right;
        }
    }
    u = scramble(u >> (4 * blocks - scale), scrambler, size);
    v = scramble(v >> (4 * blocks - scale), scrambler, size);
    starts[i] = (int)min(u, v);
    ends[i] = (int)max(u, v);
    const Words words = draw(seed, WEIGHT, first + i, 0);
    weights[i] = ((float)(words.a >> 8) + 1.0f) * 0x1p-24f;
}
