// A sweep of Bellman-Ford over the edges of an undirected graph, each once: a thread relaxes both arcs of its edge.
//
//     sweep                    as published: threads read and write one array by plain loads and stores, in a race
//     sweep_read_only          as published: threads read through a second name of the same array, which is said not to
//                              change, so that loads take the read-only path
//     sweep_atomic             as `sweep`, but threads lower a distance by atomicMin
//     sweep_atomic_read_only   as `sweep_read_only`, likewise
//
// distances (n) are numbers from +0.0 to +inf, as integers in the same order, so that the minimum of integers is theirs.
// An arc that improves its head stores the number of the sweep in `changed`; after a sweep in which none does,
// distances are shortest.
//
// The race: of two threads that store to one distance, the one with the larger sum may come last. The distance then
// rises within the sweep, but stays below its value at the beginning of the sweep, since no thread stores a sum that is
// not below the distance it read. So a distance falls from sweep to sweep or stays, and sweeps end. How many there are
// depends on the order of the threads. A distance that was read late, or through the read-only path, is still an upper
// bound: every launch begins with an empty cache of that path.
//
// Launch: a thread for every edge, in blocks of THREADS.
// Macros: NUMBER of weights and distances, float or double; THREADS.
//
// "Implementing SSSP algorithm on GPU", https://habr.com/ru/post/214515, 2014.

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

struct Store {
    __device__ static void improve(Word* distance, Word candidate) { *distance = candidate; }
};
struct Lower {
    __device__ static void improve(Word* distance, Word candidate) { atomicMin(distance, candidate); }
};

template <class Improvement, class Load>
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
        Improvement::improve(distances + start, from_end);
        *changed = number;
    } else if (from_start < at_end) {
        Improvement::improve(distances + end, from_start);
        *changed = number;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sweep(const int* __restrict__ starts, const int* __restrict__ ends, const Number* __restrict__ weights,
          long long edges, Word* distances, int* changed, int number) {
    relax_both<Store>(starts, ends, weights, edges, distances, changed, number,
                      [&](int vertex) { return distances[vertex]; });
}

// known: the array `distances`.
extern "C" __global__ void __launch_bounds__(THREADS)
    sweep_read_only(const int* __restrict__ starts, const int* __restrict__ ends, const Number* __restrict__ weights,
                    long long edges, const Word* __restrict__ known, Word* distances, int* changed, int number) {
    relax_both<Store>(starts, ends, weights, edges, distances, changed, number,
                      [&](int vertex) { return __ldg(known + vertex); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sweep_atomic(const int* __restrict__ starts, const int* __restrict__ ends, const Number* __restrict__ weights,
                 long long edges, Word* distances, int* changed, int number) {
    relax_both<Lower>(starts, ends, weights, edges, distances, changed, number,
                      [&](int vertex) { return distances[vertex]; });
}

// known: the array `distances`.
extern "C" __global__ void __launch_bounds__(THREADS)
    sweep_atomic_read_only(const int* __restrict__ starts, const int* __restrict__ ends,
                           const Number* __restrict__ weights, long long edges, const Word* __restrict__ known,
                           Word* distances, int* changed, int number) {
    relax_both<Lower>(starts, ends, weights, edges, distances, changed, number,
                      [&](int vertex) { return __ldg(known + vertex); });
}
