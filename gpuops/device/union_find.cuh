// Disjoint sets, for any number of threads at once; _union_find_numba.py is the same for a CPU.
//
// parents[x] is x at first: every set is a tree whose members point to their parents, and its root, which points to
// itself, is its least member. So whatever the order of unions and however threads race, in the end the root of a set
// is its least member.
//
// No step of one thread undoes one of another. Only a compare-and-swap makes a root point elsewhere, to something less,
// and only once; all else that is stored in parents[x] is an ancestor of x, found earlier. A thread that reads an old
// value, from a cache too, reads a nearer ancestor.
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

// The root of the set of x. Halves the path to it: those on it come to point two steps further.
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

// Make one set of those of a and b; were they two? Of all calls that race to unite two sets one is told so.
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

// Bring x nearer to its root, when all unions are done; does it point to it now? Called for all x, again until all do,
// it shortens every path to a ninth or better: so often that 9 to that power exceeds the longest. A thread shortens its
// own path alone, so that none brings an older ancestor back.
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

// The same to the end, for paths known to be short.
template <class Index>
__device__ inline void flatten(Index* parents, Index x) {
    while (!shorten(parents, x)) {
    }
}
