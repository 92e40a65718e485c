// Disjoint sets, for any number of threads at once; _union_find_numba.py is the same for a CPU.
//
// Initially parents[x] is x. Every set is a tree whose members point to their parents. The root of a tree points to
// itself and is its least member. So whatever the order of unions and however threads race, in the end the root of a
// set is the least member of the set.
//
// No thread undoes a step of another thread. Only a compare-and-swap makes a root point elsewhere, to a smaller
// element, and only once. Every other value stored in parents[x] is an ancestor of x that was found earlier. A thread
// that reads an outdated value, perhaps from a cache, therefore reads a nearer ancestor of x.
//
// J. Jaiganesh, M. Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018.
#pragma once

__device__ inline int compare_and_swap(int* address, int expected, int value) {
    return atomicCAS(address, expected, value);
}
__device__ inline long long compare_and_swap(long long* address, long long expected, long long value) {
    typedef unsigned long long Word;
    return (long long)atomicCAS((Word*)address, (Word)expected, (Word)value);
}

// Returns the root of the set of x. Halves the path: elements of the path come to point two steps further.
template <class Index>
__device__ inline Index find(Index* parents, Index x) {
    Index parent = parents[x];
    while (parent != x) {
        const Index grandparent = parents[parent];
        if (grandparent != parent) parents[x] = grandparent;
        x = parent;
        parent = grandparent;
    }
    return x;
}

// Unites the sets of a and b. Returns true if they were two sets; of several racing calls, only one returns true.
template <class Index>
__device__ inline bool unite(Index* parents, Index a, Index b) {
    a = find(parents, a);
    b = find(parents, b);
    while (a != b) {
        const Index larger = a < b ? b : a, smaller = a < b ? a : b;
        const Index seen = compare_and_swap(parents + larger, larger, smaller);
        if (seen == larger) return true;
        a = find(parents, seen);
        b = smaller;
    }
    return false;
}

// Moves parents[x] up to eight steps nearer to the root, after all unions are done. Returns whether x now points to its
// root. A pass over all x makes every path at least nine times shorter, so k passes suffice for paths of up to 9^k
// steps. Each thread stores only in the parents[x] of its x, so that no older ancestor comes back.
template <class Index>
__device__ inline bool shorten(Index* parents, Index x) {
    Index parent = parents[x];
    for (int i = 0; i < 8; ++i) {
        const Index next = __ldcg(parents + parent);
        if (next == parent) return true;
        __stcg(parents + x, next);
        parent = next;
    }
    return __ldcg(parents + parent) == parent;
}

// Makes x point to its root, after all unions are done; for paths that are known to be short.
template <class Index>
__device__ inline void flatten(Index* parents, Index x) {
    while (!shorten(parents, x)) {
    }
}
