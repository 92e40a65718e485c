// A sweep of Bellman-Ford over the edges of an undirected graph, each once: a thread relaxes both arcs of its edge.
//
//     sweep             reads and writes one array
//     sweep_read_only   reads through a second name of the same array, which is said not to change, so that loads take
//                       the read-only path. What they find may be a sweep old, no more: every launch begins with an
//                       empty cache.
//
// distances (n) are numbers from +0.0 to +inf, as integers in the same order, so that the minimum of integers is theirs.
// An arc that improves its head stores the number of the sweep in `changed`; after a sweep in which none does,
// distances are shortest. Threads race: an upper bound that was read late is still an upper bound.
//
// Launch: a thread for every edge, in blocks of THREADS.
// Macros: NUMBER of weights and distances, float or double; THREADS.
//
// "Implementing SSSP algorithm on GPU", https://habr.com/ru/post/214515, 2014. Stores there are not atomic, so a
// distance may rise again, and there are more sweeps.

using Number = NUMBER;

template <class T>
struct Bits {
    using Word = int;
    __device__ static Word of(float x) { return __float_as_int(x); }
    __device__ static float number(Word word) { return __int_as_float(word); }
};
template <>
struct Bits<double> {
    using Word = long long;
    __device__ static Word of(double x) { return __double_as_longlong(x); }
    __device__ static double number(Word word) { return __longlong_as_double(word); }
};
using Word = Bits<Number>::Word;

__device__ inline Word sum(Word distance, Number weight) {
    return Bits<Number>::of(Bits<Number>::number(distance) + weight);
}

__device__ inline void improve(Word* distance, Word candidate, int* changed, int number) {
    atomicMin(distance, candidate);
    *changed = number;
}

template <class Load>
__device__ inline void relax_both(const int* __restrict__ starts, const int* __restrict__ ends,
                                  const Number* __restrict__ weights, long long edges, Word* distances, int* changed,
                                  int number, Load load) {
    const long long edge = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (edge >= edges) return;
    const int start = starts[edge], end = ends[edge];
    const Number weight = weights[edge];
    const Word at_start = load(start), at_end = load(end);
    const Word from_end = sum(at_end, weight), from_start = sum(at_start, weight);
    // At most one of the two improves anything.
    if (from_end < at_start) {
        improve(distances + start, from_end, changed, number);
    } else if (from_start < at_end) {
        improve(distances + end, from_start, changed, number);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sweep(const int* __restrict__ starts, const int* __restrict__ ends, const Number* __restrict__ weights,
          long long edges, Word* distances, int* changed, int number) {
    relax_both(starts, ends, weights, edges, distances, changed, number, [&](int vertex) { return distances[vertex]; });
}

// known: the array `distances`.
extern "C" __global__ void __launch_bounds__(THREADS)
    sweep_read_only(const int* __restrict__ starts, const int* __restrict__ ends, const Number* __restrict__ weights,
                    long long edges, const Word* __restrict__ known, Word* distances, int* changed, int number) {
    relax_both(starts, ends, weights, edges, distances, changed, number,
               [&](int vertex) { return __ldg(known + vertex); });
}
