// R-MAT edges by number: two ends, by descent and scrambling, and a weight, all from the counter-based generator
// Philox4x32-10.
//
// The generator on a CPU draws the same bits, and explains why they are drawn in this way.
//
// Macros: VALUE, the type of a weight. Launch: blocks of THREADS threads, one thread for each edge.

using Value = VALUE;

constexpr unsigned ENDS = 0, WEIGHT = 1;  // streams of random numbers
constexpr unsigned HEAVIEST = 255;        // the largest integer weight

// Parameters of the drawing; rmat/rmat_cuda.py has the same fields.
struct Drawing {
    unsigned long long seed;
    unsigned long long limits[3];     // cumulative probabilities of the quadrants, times 2^32
    unsigned long long scrambled[8];  // factors and summands, alternating
    int scale, shift;                 // 2^scale vertices; the shift of the scrambling
    int scrambles, integers, bits;    // scramble? integer weights? random bits of a float weight
    int both;                         // whether an edge is an arc in each direction
};

struct Words {
    unsigned a, b, c, d;
};

__device__ inline Words draw(unsigned long long seed, unsigned stream, unsigned long long item, unsigned block) {
    unsigned key_0 = (unsigned)seed, key_1 = (unsigned)(seed >> 32);
    Words x{(unsigned)item, (unsigned)(item >> 32), block, stream};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long left = 0xD2511F53ull * x.a, right = 0xCD9E8D57ull * x.c;
        x = {(unsigned)(right >> 32) ^ x.b ^ key_0, (unsigned)right, (unsigned)(left >> 32) ^ x.d ^ key_1,
             (unsigned)left};
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
    return x;
}

struct Ends {
    unsigned tail, head;
};

__device__ inline void descend(const Drawing& drawing, unsigned word, Ends& ends) {
    const bool lower = word >= drawing.limits[1];
    const bool right = (word >= drawing.limits[0]) != lower != (word >= drawing.limits[2]);
    ends.tail = ends.tail << 1 | (unsigned)lower;
    ends.head = ends.head << 1 | (unsigned)right;
}

// 32 bits suffice although the factors have 64: every step keeps the bits under the mask, which do not depend on higher
// bits.
__device__ inline unsigned scrambled(const Drawing& drawing, unsigned vertex) {
    const unsigned mask = (unsigned)((1ull << drawing.scale) - 1);
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        vertex = (vertex * (unsigned)drawing.scrambled[i] + (unsigned)drawing.scrambled[i + 1]) & mask;
        vertex ^= vertex >> drawing.shift;
    }
    return vertex;
}

__device__ inline Ends ends_of(const Drawing& drawing, unsigned long long edge) {
    const int blocks = (drawing.scale + 3) / 4, beyond = 4 * blocks - drawing.scale;
    Ends ends{0, 0};
    for (int block = 0; block < blocks; ++block) {
        const Words words = draw(drawing.seed, ENDS, edge, (unsigned)block);
        descend(drawing, words.a, ends);
        descend(drawing, words.b, ends);
        descend(drawing, words.c, ends);
        descend(drawing, words.d, ends);
    }
    ends = {ends.tail >> beyond, ends.head >> beyond};
    if (drawing.scrambles) ends = {scrambled(drawing, ends.tail), scrambled(drawing, ends.head)};
    return ends;
}

__device__ inline Value weight_of(const Drawing& drawing, unsigned long long edge) {
    const Words words = draw(drawing.seed, WEIGHT, edge, 0);
    const unsigned long long low = words.b, high = words.a;
    if (drawing.integers) return (Value)(((high * HEAVIEST + (low * HEAVIEST >> 32)) >> 32) + 1);
    const unsigned long long drawn = (high << 32 | low) >> (64 - drawing.bits);
    return (Value)(((double)drawn + 1) * (1 / (double)(1ull << drawing.bits)));
}

__device__ inline unsigned long long thread_of_grid() {
    return (unsigned long long)blockIdx.x * THREADS + threadIdx.x;
}

// Stores the `size` edges from `start` on in tails, heads and weights.
extern "C" __global__ void __launch_bounds__(THREADS)
    edges(const Drawing* __restrict__ drawing, unsigned long long start, unsigned long long size,
          int* __restrict__ tails, int* __restrict__ heads, Value* __restrict__ weights) {
    const unsigned long long i = thread_of_grid();
    if (i >= size) return;
    const Ends ends = ends_of(*drawing, start + i);
    tails[i] = (int)ends.tail;
    heads[i] = (int)ends.head;
    weights[i] = weight_of(*drawing, start + i);
}

// Counts in degrees (rows) the arcs of the edges 0 to `size` - 1 out of each of the `rows` vertices from `first` on.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_arcs(const Drawing* __restrict__ drawing, unsigned long long size, unsigned first, unsigned rows,
               int* degrees) {
    const unsigned long long i = thread_of_grid();
    if (i >= size) return;
    const Ends ends = ends_of(*drawing, i);
    if (ends.tail - first < rows) atomicAdd(degrees + (ends.tail - first), 1);
    if (drawing->both && ends.head - first < rows) atomicAdd(degrees + (ends.head - first), 1);
}

// Stores the heads and weights of the same arcs by rows, in any order within a row. places (rows): the place of the
// next arc of each row.
extern "C" __global__ void __launch_bounds__(THREADS)
    place_arcs(const Drawing* __restrict__ drawing, unsigned long long size, unsigned first, unsigned rows,
               unsigned long long* places, int* __restrict__ indices, Value* __restrict__ weights) {
    const unsigned long long i = thread_of_grid();
    if (i >= size) return;
    const Ends ends = ends_of(*drawing, i);
    const bool out = ends.tail - first < rows, back = drawing->both && ends.head - first < rows;
    if (!out && !back) return;
    const Value weight = weight_of(*drawing, i);
    if (out) {
        const unsigned long long place = atomicAdd(places + (ends.tail - first), 1ull);
        indices[place] = (int)ends.head;
        weights[place] = weight;
    }
    if (back) {
        const unsigned long long place = atomicAdd(places + (ends.head - first), 1ull);
        indices[place] = (int)ends.tail;
        weights[place] = weight;
    }
}
