// The minimum spanning forest by arc number, by Boruvka's algorithm: in a round, all trees at once choose the least arc
// that leaves them. Numbers differ, so choices never close a cycle, but two trees may choose the same arc. Every round
// at least halves the number of trees that arcs still leave.
//
//   offer_all    one thread for each arc offers the arc to both of its ends, which are single-vertex trees at first
//   choose       one thread for each vertex: a root marks the least arc that it was offered as chosen, and points to
//                the root at the other end. If two roots choose the same arc, the lesser stays a root.
//   shorten_all  one thread for each vertex makes it point to its root again; launched until `unfinished` stays 0
//   keep         one thread for each arc: an arc between two trees goes to the next list and is offered to both roots
//   lower        one thread for each vertex finds the least vertex of every tree
//
// The order of offers and of the lists changes from run to run; the least arc of a tree does not.
//
// Macros: VERTEX, the type of vertices, and ARC, the type of arc numbers: int or long long.
//
// O. Boruvka, "O jistem problemu minimalnim", 1926; M. Burtscher et al., "A high-performance
// MST implementation for GPUs", SC 2023.

#include "../device/append.cuh"
#include "../device/union_find.cuh"

using Vertex = VERTEX;
using Arc = ARC;

constexpr int THREADS = 256;
constexpr Arc NONE = sizeof(Arc) == 4 ? (Arc)0x7fffffff : (Arc)0x7fffffffffffffff;

__device__ inline long long own_number() {
    return (long long)blockIdx.x * THREADS + threadIdx.x;
}

// Minima only fall, so an outdated minimum, read from a cache, is never too small. Few threads need the atomic.
template <class Value>
__device__ inline void offer(Value* least, Value value) {
    if (value < *least) atomicMin(least, value);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    offer_all(const Vertex* __restrict__ tails, const Vertex* __restrict__ heads, long long m, Arc* best) {
    const long long arc = own_number();
    if (arc >= m) return;
    const Vertex tail = tails[arc], head = heads[arc];
    if (tail == head) return;
    offer(best + tail, (Arc)arc);
    offer(best + head, (Arc)arc);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    choose(const Vertex* __restrict__ tails, const Vertex* __restrict__ heads, long long n,
           const Vertex* __restrict__ parents, const Arc* __restrict__ best, Vertex* __restrict__ new_parents,
           bool* __restrict__ chosen) {
    const Vertex v = (Vertex)own_number();
    if (own_number() >= n) return;
    const Vertex parent = parents[v];
    const Arc arc = parent == v ? best[v] : NONE;
    if (arc == NONE) {
        new_parents[v] = parent;
        return;
    }
    const Vertex at_tail = parents[tails[arc]], at_head = parents[heads[arc]];
    const Vertex other = at_tail == v ? at_head : at_tail;
    const bool stays = best[other] == arc && v < other;
    new_parents[v] = stays ? v : other;
    chosen[arc] = true;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    shorten_all(Vertex* parents, long long n, Arc* __restrict__ best, int* unfinished) {
    const long long v = own_number();
    if (v >= n) return;
    best[v] = NONE;  // for the next round
    if (!shorten(parents, (Vertex)v)) *unfinished = 1;
}

// `all`: the list has all arcs in order, and `numbers` is not read.
extern "C" __global__ void __launch_bounds__(THREADS)
    keep(const Vertex* __restrict__ tails, const Vertex* __restrict__ heads, const Arc* __restrict__ numbers, int all,
         long long size, const Vertex* __restrict__ parents, Arc* best, Vertex* __restrict__ kept_tails,
         Vertex* __restrict__ kept_heads, Arc* __restrict__ kept_numbers, unsigned long long* count) {
    const long long i = own_number();
    Vertex tail = 0, head = 0;
    if (i < size) {
        tail = parents[tails[i]];
        head = parents[heads[i]];
    }
    const bool between = tail != head;
    const unsigned long long place = append<THREADS>(between, count);
    if (!between) return;
    const Arc arc = all ? (Arc)i : numbers[i];
    kept_tails[place] = tail;
    kept_heads[place] = head;
    kept_numbers[place] = arc;
    offer(best + tail, arc);
    offer(best + head, arc);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lower(const Vertex* __restrict__ parents, long long n, Vertex* least) {
    const long long v = own_number();
    if (v < n) offer(least + parents[v], (Vertex)v);
}
