// The minimum spanning forest by arc number, by Boruvka: every tree chooses the least arc that leaves it, all of them
// at once. Numbers differ, so that choices never close a cycle, but two trees may choose the same arc. Trees at least
// halve in number in every round.
//
//   offer_all    a thread an arc: offers it to both of its ends, each a tree of its own at first
//   choose       a thread a vertex: a root takes the least arc it was offered, which is marked, and points to the root
//                at its other end. Of two that choose the same arc the lesser stays a root.
//   shorten_all  a thread a vertex: all point to roots again; launched again until it leaves `unfinished` 0
//   keep         a thread an arc: those between two trees go to the next list, and are offered to both roots
//   lower        a thread a vertex: the least vertex of every tree
//
// What is offered when, and the order in lists, changes from run to run; the least arc does not.
//
// Macros: VERTEX, and ARC of arc numbers, int or long long each.
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

// Minima only fall: an old one, read from a cache, is not less, and few have to be lowered.
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

// `numbers` is null where the list is that of all arcs.
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
