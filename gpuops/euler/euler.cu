// Euler circuits: circuits of a pairing, the links that join them, and the walk in order.
//
// Arcs have the numbers 0..m-1 of their places in CSR. predecessors (m) is a permutation of them; its cycles are
// circuits. A label is the least arc of a circuit. A link is a slot s, an arc that is not the first of its row: it
// links the circuits of s - 1 and s.
//
//   choose_splitters, number_splitters     some arcs by a hash, and starts; their numbers in arc order
//   survey, leap_around, label_ways        least arcs of circuits: ways between splitters, pointer doubling over them
//   list_unlabelled, label_unite, label_flatten    least arcs of circuits without splitters: union-find
//   mark_rows                              first slots of the rows
//   propose_links, accept_links            a round of Boruvka: the least link of every tree of circuits is in the forest
//   components                             least arcs of what is joined: of every label, and listed
//   measure                                ways between splitters again: which is next, and how far
//   leap                                   pointer doubling over them: how far to the end of the circuit
//   measure_circuits, write_order          the same ways again, each arc to its place
//
// The roots of union-find trees are their least members, so what comes out does not depend on the order of threads.
// Macro ARC: int or long long, the type of arc numbers. Launch: blocks of any size; the splitters take a thread for
// each word of 32 arcs, the others any number of threads.
//
// B. Awerbuch, A. Israeli, Y. Shiloach, "Finding Euler circuits in logarithmic parallel time", STOC 1984. D. R. Helman,
// J. JaJa, "Designing practical efficient algorithms for symmetric multiprocessors", 1999 (splitters). J. Jaiganesh,
// M. Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018 (union-find).

#include "../device/union_find.cuh"

using Word = unsigned int;

constexpr ARC NONE = sizeof(ARC) == 4 ? (ARC)0x7fffffff : (ARC)0x7fffffffffffffffll;

__device__ inline long long thread_number() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline long long all_threads() {
    return (long long)gridDim.x * blockDim.x;
}

// --- Splitters ----------------------------------------------------------------------------------------------------

__device__ inline bool is_splitter(const Word* splitters, ARC a) {
    return __ldg(splitters + (a >> 5)) >> (a & 31) & 1;
}

__device__ inline int splitter_number(const Word* splitters, const int* before, ARC a) {
    const Word word = splitters[a >> 5];
    return before[a >> 5] + __popc(word & ((1u << (a & 31)) - 1));
}

// splitters: a bit for every arc; those of starts are set already, and one arc in 2^rarity joins them.
extern "C" __global__ void choose_splitters(Word* splitters, int* counts, int rarity, long long m) {
    const long long w = thread_number();
    if (w * 32 >= m) return;
    Word word = splitters[w];
    for (int bit = 0; bit < 32; ++bit) {
        const Word hash = (Word)(w * 32 + bit) * 2654435769u;
        if (w * 32 + bit < m && hash >> (32 - rarity) == 0) word |= 1u << bit;
    }
    splitters[w] = word;
    counts[w] = __popc(word);
}

extern "C" __global__ void set_starts(Word* splitters, const ARC* starts, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        atomicOr(splitters + (starts[i] >> 5), 1u << (starts[i] & 31));
    }
}

// arcs: of the splitters, in order.
extern "C" __global__ void number_splitters(ARC* arcs, const Word* splitters, const int* before, long long m) {
    const long long w = thread_number();
    if (w * 32 >= m) return;
    int i = before[w];
    for (Word word = splitters[w]; word; word &= word - 1) arcs[i++] = (ARC)(w * 32 + __ffs((int)word) - 1);
}

// --- Labels -------------------------------------------------------------------------------------------------------

// From each splitter back to the next one: which, and the least arc on the way.
extern "C" __global__ void survey(int* next, ARC* least, const ARC* arcs, const ARC* predecessors,
                                  const Word* splitters, const int* before, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        ARC a = arcs[i], lowest = a;
        while (!is_splitter(splitters, a = predecessors[a])) lowest = min(lowest, a);
        least[i] = lowest;
        next[i] = splitter_number(splitters, before, a);
    }
}

// Once ways are as long as circuits, the least arcs are those of circuits.
extern "C" __global__ void leap_around(int* next_after, ARC* least_after, const int* next, const ARC* least,
                                       long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        const int j = next[i];
        next_after[i] = next[j];
        least_after[i] = min(least[i], least[j]);
    }
}

extern "C" __global__ void label_ways(ARC* labels, const ARC* least, const ARC* arcs, const ARC* predecessors,
                                      const Word* splitters, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        const ARC label = least[i];
        ARC a = arcs[i];
        do {
            labels[a] = label;
            a = predecessors[a];
        } while (!is_splitter(splitters, a));
    }
}

// What has no label yet lies on circuits without splitters, short ones. They are left to union-find: its long trees
// are what the splitters are for.
extern "C" __global__ void list_unlabelled(ARC* rest, Word* count, ARC* labels, const ARC* predecessors, long long m) {
    for (long long a = thread_number(); a < m; a += all_threads()) {
        if (labels[a] >= 0) continue;
        labels[a] = min((ARC)a, predecessors[a]);
        rest[atomicAdd(count, 1u)] = (ARC)a;
    }
}

extern "C" __global__ void label_unite(ARC* labels, const ARC* rest, const ARC* predecessors, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        const ARC a = rest[i];
        if (predecessors[a] > a) unite(labels, a, predecessors[a]);
    }
}

extern "C" __global__ void label_flatten(ARC* labels, const ARC* rest, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) flatten(labels, rest[i]);
}

// --- The spanning forest of links ---------------------------------------------------------------------------------

extern "C" __global__ void mark_rows(unsigned char* first, const long long* indptr, long long n) {
    for (long long v = thread_number(); v < n; v += all_threads()) {
        if (indptr[v] < indptr[v + 1]) first[indptr[v]] = 1;
    }
}

__device__ inline void lower(ARC* address, ARC value) {
    if (value < __ldcg(address)) atomicMin(address, value);
}

// `slots` (count) are the links to choose from; where there are none, all slots that are not the first of a row.
extern "C" __global__ void propose_links(int* found, ARC* best, ARC* trees, const ARC* labels,
                                         const unsigned char* first, const ARC* slots, long long count, int listed) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        if (!listed && first[i]) continue;
        const ARC s = listed ? slots[i] : (ARC)i;
        ARC a = labels[s - 1], b = labels[s];
        if (a == b) continue;
        a = find(trees, a), b = find(trees, b);
        if (a == b) continue;
        lower(best + a, s);
        lower(best + b, s);
        *found = 1;
    }
}

// Both trees of a link may have chosen it: it is listed once.
extern "C" __global__ void accept_links(ARC* best, ARC* trees, Word* accepted, ARC* links, Word* count,
                                        const ARC* labels, long long m) {
    for (long long c = thread_number(); c < m; c += all_threads()) {
        const ARC s = best[c];
        if (s == NONE) continue;
        best[c] = NONE;
        unite(trees, labels[s - 1], labels[s]);
        const Word bit = 1u << (s & 31);
        if (!(atomicOr(accepted + (s >> 5), bit) & bit)) links[atomicAdd(count, 1u)] = s;
    }
}

extern "C" __global__ void components(ARC* starts, Word* count, ARC* trees, const ARC* labels, long long m) {
    for (long long c = thread_number(); c < m; c += all_threads()) {
        if (labels[c] != c) continue;
        flatten(trees, (ARC)c);
        if (trees[c] == c) starts[atomicAdd(count, 1u)] = (ARC)c;
    }
}

// --- The walk -----------------------------------------------------------------------------------------------------

// Circuits end before their starts: `next` is then -1.
extern "C" __global__ void measure(int* next, ARC* lengths, const ARC* arcs, const ARC* predecessors,
                                   const Word* splitters, const Word* ends, const int* before, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        ARC a = arcs[i], length = 0;
        do {
            a = predecessors[a];
            ++length;
        } while (!is_splitter(splitters, a));
        lengths[i] = length;
        next[i] = is_splitter(ends, a) ? -1 : splitter_number(splitters, before, a);
    }
}

extern "C" __global__ void leap(int* next_after, ARC* lengths_after, const int* next, const ARC* lengths,
                                long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        const int j = next[i];
        next_after[i] = j < 0 ? -1 : next[j];
        lengths_after[i] = lengths[i] + (j < 0 ? 0 : lengths[j]);
    }
}

// circuits[label] = k for the label of circuit k; lengths of the circuits.
extern "C" __global__ void measure_circuits(long long* circuit_lengths, ARC* circuits, const ARC* starts,
                                            const ARC* labels, const ARC* lengths, const Word* splitters,
                                            const int* before, long long count) {
    for (long long k = thread_number(); k < count; k += all_threads()) {
        circuit_lengths[k] = lengths[splitter_number(splitters, before, starts[k])];
        circuits[labels[starts[k]]] = (ARC)k;
    }
}

// order (m): circuit k from offsets[k] on. An arc that is r arcs before the end of its circuit, going back, stands at
// r; the start, which is as far as the circuit is long, at 0.
extern "C" __global__ void write_order(ARC* order, const long long* offsets, const ARC* circuits, const ARC* labels,
                                       const ARC* arcs, const ARC* lengths, const ARC* predecessors,
                                       const Word* splitters, const Word* ends, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        ARC a = arcs[i];
        const long long base = offsets[circuits[labels[a]]];
        long long place = base + lengths[i];
        if (is_splitter(ends, a)) {
            order[base] = a;
            a = predecessors[a];
            --place;
            if (is_splitter(splitters, a)) continue;
        }
        do {
            order[place--] = a;
            a = predecessors[a];
        } while (!is_splitter(splitters, a));
    }
}
