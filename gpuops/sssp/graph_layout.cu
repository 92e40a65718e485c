// A graph laid out for searches: the kernels that run between the sorts; graph_layout_cuda.py describes their order.
//
// Sorts are CuPy's, by keys that these kernels make. A dropped arc gets the largest key and so comes last.
//
// Macros: DISTANCE, Float32, Float64 or Int32 of distances.cuh, the dtype of the distances.
// Launch: THREADS threads a block, a thread for each element, or grid strides.

#include "../device/distances.cuh"

using Distance = DISTANCE<true>;
using Value = Distance::Value;
using Word = Distance::Word;

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr long long DROPPED = 0x7fffffffffffffff;

// Counts of the kernels, all 0 at first; sssp/graph_layout_cuda.py has the same fields.
struct Report {
    unsigned long long not_finite, fractions, too_large, negative;  // weights
    unsigned long long loop;                                        // ~i for the first loop i of negative weight, or 0
    unsigned long long kept, parallel;                              // arcs
    unsigned long long closed, uneven;                              // vertices
    unsigned long long active;
    double magnitudes;
};

__device__ inline long long thread_of_grid() {
    return (long long)blockIdx.x * THREADS + threadIdx.x;
}

// Called by whole warps: adds the number of lanes whose `mine` is true.
__device__ inline void count(unsigned long long* total, bool mine) {
    const unsigned votes = __ballot_sync(ALL_LANES, mine);
    if (votes && threadIdx.x % 32 == 0) atomicAdd(total, (unsigned long long)__popc(votes));
}

// A weight, given as float, double, int or long long.
struct Weight {
    double real;
    long long whole;
    bool is_whole;
};

__device__ inline Weight weight_at(const void* weights, int kind, long long i) {
    if (kind == 0) return {((const float*)weights)[i], 0, false};
    if (kind == 1) return {((const double*)weights)[i], 0, false};
    return {0, kind == 2 ? ((const int*)weights)[i] : ((const long long*)weights)[i], true};
}

__device__ inline bool convert(const Weight& weight, Report*, float& value) {
    value = (weight.is_whole ? (float)weight.whole : (float)weight.real) + 0.0f;
    return value < __int_as_float(0x7f800000);
}
__device__ inline bool convert(const Weight& weight, Report*, double& value) {
    value = (weight.is_whole ? (double)weight.whole : weight.real) + 0.0;
    return value < __longlong_as_double(0x7ff0000000000000);
}
__device__ inline bool convert(const Weight& weight, Report* report, int& value) {
    const double real = weight.is_whole ? 0 : weight.real;
    const bool fits =
        weight.is_whole ? weight.whole == (int)weight.whole : real >= -2147483648.0 && real <= 2147483647.0;
    if (real != rint(real)) report->fractions = 1;
    if (!fits) report->too_large = 1;
    value = !fits ? 0 : weight.is_whole ? (int)weight.whole : (int)real;
    return true;
}

// Writes values (m), and pairs (m): the tail of an arc in the high bits, its head in the low bits.
extern "C" __global__ void __launch_bounds__(THREADS)
    read_arcs(const int* __restrict__ tails, const void* __restrict__ indices, int wide,
              const void* __restrict__ weights, int kind, long long m, Value* __restrict__ values,
              long long* __restrict__ pairs, Report* report) {
    const long long i = thread_of_grid();
    bool kept = false;
    if (i < m) {
        const int tail = tails[i];
        const int head = wide ? (int)((const long long*)indices)[i] : ((const int*)indices)[i];
        const Weight weight = weight_at(weights, kind, i);
        if (!weight.is_whole && !(weight.real > -__longlong_as_double(0x7ff0000000000000))) report->not_finite = 1;
        Value value;
        kept = convert(weight, report, value) && tail != head;
        if (tail == head && value < 0) atomicMax(&report->loop, ~(unsigned long long)i);
        if (kept && value < 0) report->negative = 1;
        values[i] = value;
        pairs[i] = kept ? (long long)tail << 32 | head : DROPPED;
    }
    count(&report->kept, kept);
}

// Writes sorted (m), the pairs in order, and words (m), their weights as integers that compare like the weights. Counts
// parallel arcs.
extern "C" __global__ void __launch_bounds__(THREADS)
    order_arcs(const long long* __restrict__ pairs, const long long* __restrict__ order,
               const Value* __restrict__ values, long long m, long long kept, long long* __restrict__ sorted,
               Word* __restrict__ words, Report* report) {
    const long long i = thread_of_grid();
    bool parallel = false;
    if (i < m) {
        const long long pair = pairs[order[i]];
        sorted[i] = pair;
        words[i] = Distance::word(values[order[i]]);
        parallel = i > 0 && i < kept && pairs[order[i - 1]] == pair;
    }
    count(&report->parallel, parallel);
}

// Gives the first of parallel arcs the least weight of all the parallel arcs.
extern "C" __global__ void __launch_bounds__(THREADS)
    find_lightest(const long long* __restrict__ sorted, long long kept, Word* words) {
    const long long i = thread_of_grid();
    if (i == 0 || i >= kept || sorted[i - 1] != sorted[i]) return;
    long long low = 0, end = i;
    while (low < end) {
        const long long middle = low + (end - low) / 2;
        if (sorted[middle] < sorted[i]) {
            low = middle + 1;
        } else {
            end = middle;
        }
    }
    atomicMin(words + low, words[i]);
}

// Drops parallel arcs except the first. The result is a new array, because a thread reads its neighbour's arc.
extern "C" __global__ void __launch_bounds__(THREADS)
    drop_parallel(const long long* __restrict__ sorted, long long m, long long* __restrict__ unique) {
    const long long i = thread_of_grid();
    if (i < m) unique[i] = i > 0 && sorted[i - 1] == sorted[i] ? DROPPED : sorted[i];
}

// Adds the arcs, sorted by tail, to degrees (n): lanes with the same tail add together. With `both`, also adds them to
// in_degrees (n).
extern "C" __global__ void __launch_bounds__(THREADS)
    count_degrees(const long long* __restrict__ arcs, long long m, int n, int* degrees, int* in_degrees, int both) {
    const long long i = thread_of_grid();
    const int lane = threadIdx.x % 32;
    const long long arc = i < m ? arcs[i] : DROPPED;
    const bool there = arc != DROPPED;
    const int tail = there ? (int)(arc >> 32) : -1, before = __shfl_up_sync(ALL_LANES, tail, 1);
    const bool begins = lane == 0 || before != tail;
    const unsigned starts = __ballot_sync(ALL_LANES, begins), later = lane == 31 ? 0 : starts >> (lane + 1);
    const int length = later ? __ffs((int)later) : 32 - lane;
    if (begins && there) atomicAdd(degrees + tail, length);
    if (both && there) atomicAdd(in_degrees + (int)(arc & 0xffffffff), 1);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    vertex_keys(const int* __restrict__ degrees, const int* __restrict__ in_degrees, int n, long long m, int both,
                long long* __restrict__ keys, Report* report) {
    const long long v = thread_of_grid();
    if (v < n) keys[v] = m - degrees[v];
    count(&report->uneven, v < n && both && degrees[v] != in_degrees[v]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    number_vertices(const long long* __restrict__ sorted, int n, int* __restrict__ order, int* __restrict__ rank,
                    const bool* __restrict__ through, int has_through, bool* __restrict__ passes, Report* report) {
    const long long i = thread_of_grid();
    bool closed = false;
    if (i < n) {
        const int vertex = (int)sorted[i];
        order[i] = vertex;
        rank[vertex] = (int)i;
        if (has_through) {
            passes[i] = through[vertex];
            closed = !through[vertex];
        }
    }
    count(&report->closed, closed);
}

// The word of an arc, followed by `neighbour`, its other end; a word of 64 bits leaves no room for the neighbour.
__device__ inline long long weight_key(int word, int neighbour) {
    return (long long)((unsigned long long)((unsigned)word ^ 0x80000000u) << 31 | (unsigned)neighbour);
}
__device__ inline long long weight_key(long long word, int) {
    return word;
}

// Writes vertices (m) and neighbours (m), the ends of arcs in the new numbering, and keys (m), by which arcs are sorted
// by weight.
extern "C" __global__ void __launch_bounds__(THREADS)
    number_arcs(const long long* __restrict__ arcs, const Word* __restrict__ words, const int* __restrict__ rank,
                long long m, int transposed, int* __restrict__ vertices, int* __restrict__ neighbours,
                long long* __restrict__ keys) {
    const long long i = thread_of_grid();
    if (i >= m) return;
    const long long arc = arcs[i];
    if (arc == DROPPED) {
        vertices[i] = neighbours[i] = 0x7fffffff;
        keys[i] = DROPPED;
        return;
    }
    const int tail = rank[arc >> 32], head = rank[arc & 0xffffffff];
    vertices[i] = transposed ? head : tail;
    neighbours[i] = transposed ? tail : head;
    keys[i] = weight_key(words[i], neighbours[i]);
}

// Writes taken[i] = vertices[order[i]] or keys[order[i]]; a sort made `order`.
extern "C" __global__ void __launch_bounds__(THREADS)
    take_vertices(const int* __restrict__ vertices, const long long* __restrict__ order, long long m,
                  int* __restrict__ taken) {
    const long long i = thread_of_grid();
    if (i < m) taken[i] = vertices[order[i]];
}
extern "C" __global__ void __launch_bounds__(THREADS)
    take_keys(const long long* __restrict__ keys, const long long* __restrict__ order, long long m,
              long long* __restrict__ taken) {
    const long long i = thread_of_grid();
    if (i < m) taken[i] = keys[order[i]];
}

// Writes the arcs in the order of two successive sorts.
extern "C" __global__ void __launch_bounds__(THREADS)
    place_arcs(const long long* __restrict__ first, const long long* __restrict__ second,
               const int* __restrict__ vertices, const int* __restrict__ neighbours, const Word* __restrict__ words,
               long long kept, int* __restrict__ rows, int* __restrict__ indices, Value* __restrict__ weights) {
    const long long i = thread_of_grid();
    if (i >= kept) return;
    const long long arc = first[second[i]];
    rows[i] = vertices[arc];
    indices[i] = neighbours[arc];
    weights[i] = Distance::value(words[arc]);
}

// Writes indptr (n + 1) for `rows`, the ascending row numbers of all arcs.
extern "C" __global__ void __launch_bounds__(THREADS)
    begin_rows(const int* __restrict__ rows, long long kept, int n, long long* __restrict__ indptr) {
    const long long v = thread_of_grid();
    if (v > n) return;
    long long low = 0, end = kept;
    while (low < end) {
        const long long middle = low + (end - low) / 2;
        if (rows[middle] < v) {
            low = middle + 1;
        } else {
            end = middle;
        }
    }
    indptr[v] = low;
}

// Counts the vertices with arcs, and adds up the magnitudes of all weights.
extern "C" __global__ void __launch_bounds__(THREADS)
    measure(const long long* __restrict__ indptr, const Value* __restrict__ weights, int n, long long m,
            Report* report) {
    const long long threads = (long long)gridDim.x * THREADS;
    double sum = 0;
    unsigned long long active = 0;
    for (long long v = thread_of_grid(); v < n; v += threads) active += indptr[v + 1] > indptr[v];
    for (long long i = thread_of_grid(); i < m; i += threads) sum += fabs((double)weights[i]);
    for (int lanes = 16; lanes; lanes /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, lanes);
        active += __shfl_xor_sync(ALL_LANES, active, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&report->magnitudes, sum);
        atomicAdd(&report->active, active);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    look_for_negative(const Value* __restrict__ distances, int n, Report* report) {
    const long long threads = (long long)gridDim.x * THREADS;
    for (long long v = thread_of_grid(); v < n; v += threads) {
        if (distances[v] < 0) report->negative = 1;
    }
}
