// Euler circuits: circuits of a pairing, the links that join them, and the walk in order.
//
// Arcs have the numbers 0..m-1 of their places in CSR. predecessors (m) is a permutation of the arcs; its cycles are
// circuits. A label is the least arc of a circuit. A slot s is an arc that is not the first of its row; as a link it
// joins the circuits of s - 1 and s. Splitters are some of the arcs. A way is a splitter together with the arcs before
// it on its circuit, going back up to the next splitter, which is excluded.
//
//   set_starts, choose_splitters           the splitters: the starts of circuits, and arcs chosen by a hash
//   number_splitters                       the numbers of the splitters, in the order of arcs
//   survey, leap_around, label_ways        labels of circuits with splitters, by pointer doubling over ways
//   list_unlabelled, label_unite, label_flatten    labels of circuits without splitters, by union-find
//   mark_rows                              the first arc of every row
//   propose_links, accept_links            a round of Boruvka: every tree of circuits adds its least link to the forest
//   components                             the least arc of every component: for every label, and listed
//   narrow                                 arc numbers in the type ARC
//   propose_none                           no proposal for any tree
//   join                                   the predecessors after circuits are joined by links
//   relabel                                labels of components, for every arc
//   measure                                the length of every way, and the way before it
//   leap                                   the distance from every splitter back to a start, by pointer doubling
//   measure_circuits, write_order          the lengths of circuits, and every arc at its place
//
// The roots of union-find trees are their least members, so the results do not depend on the order of threads.
// Macro ARC: int or long long, the type of arc numbers. Launch: blocks of any size; choose_splitters and
// number_splitters need a thread for each word of 32 arcs, other kernels any number of threads.
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

__device__ inline int splitter_number(const Word* splitters, const long long* before, ARC a) {
    const Word word = splitters[a >> 5];
    return (int)before[a >> 5] + __popc(word & ((1u << (a & 31)) - 1));
}

// splitters: a bit for every arc. The bits of starts are already set; the kernel sets the bits of one arc in 2^rarity.
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

// Stores the arc numbers of the splitters in `arcs`, rising.
extern "C" __global__ void number_splitters(ARC* arcs, const Word* splitters, const long long* before, long long m) {
    const long long w = thread_number();
    if (w * 32 >= m) return;
    long long i = before[w];
    for (Word word = splitters[w]; word; word &= word - 1) arcs[i++] = (ARC)(w * 32 + __ffs((int)word) - 1);
}

extern "C" __global__ void narrow(ARC* numbers, const long long* wide, long long m) {
    for (long long a = thread_number(); a < m; a += all_threads()) numbers[a] = (ARC)wide[a];
}

// --- Labels -------------------------------------------------------------------------------------------------------

// For each way: the least arc on it, and the splitter before it.
extern "C" __global__ void survey(int* next, ARC* least, const ARC* arcs, const ARC* predecessors,
                                  const Word* splitters, const long long* before, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        ARC a = arcs[i], lowest = a;
        while (!is_splitter(splitters, a = predecessors[a])) lowest = min(lowest, a);
        least[i] = lowest;
        next[i] = splitter_number(splitters, before, a);
    }
}

// Doubles the number of ways that `least` covers. Once it covers whole circuits, `least` has their labels.
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

// Arcs without a label lie on circuits without splitters, which are short. Union-find labels them; on long circuits its
// trees would be long, which the splitters avoid.
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

extern "C" __global__ void propose_none(ARC* best, long long m) {
    for (long long c = thread_number(); c < m; c += all_threads()) best[c] = NONE;
}

// If `listed`, `slots` (count) are the links to choose from; otherwise every arc that is not the first of its row is.
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

// Both trees of a link may have chosen it; the link is listed once.
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

// --- Joined circuits ----------------------------------------------------------------------------------------------

// slots (count) are links, ascending. For consecutive links s..t, the predecessor of s - 1 moves to t, and every other
// predecessor one place down. The place of t follows from a binary search: slots[j] - j never falls.
extern "C" __global__ void join(ARC* joined, const ARC* predecessors, const ARC* slots, long long count) {
    for (long long i = thread_number(); i < count; i += all_threads()) {
        const ARC s = slots[i];
        joined[s - 1] = predecessors[s];
        if (i && slots[i - 1] == s - 1) continue;
        long long last = i, beyond = count;
        while (beyond - last > 1) {
            const long long middle = last + (beyond - last) / 2;
            (slots[middle] - s == (ARC)(middle - i) ? last : beyond) = middle;
        }
        joined[slots[last]] = predecessors[s - 1];
    }
}

extern "C" __global__ void relabel(ARC* result, const ARC* components, const ARC* labels, long long m) {
    for (long long a = thread_number(); a < m; a += all_threads()) result[a] = components[labels[a]];
}

// --- The walk -----------------------------------------------------------------------------------------------------

// Going back along a circuit ends at its start: if the splitter before a way is a start, `next` is -1.
extern "C" __global__ void measure(int* next, ARC* lengths, const ARC* arcs, const ARC* predecessors,
                                   const Word* splitters, const Word* ends, const long long* before, long long count) {
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

// Stores circuits[label] = k for the label of circuit k, and the lengths of the circuits.
extern "C" __global__ void measure_circuits(long long* circuit_lengths, ARC* circuits, const ARC* starts,
                                            const ARC* labels, const ARC* lengths, const Word* splitters,
                                            const long long* before, long long count) {
    for (long long k = thread_number(); k < count; k += all_threads()) {
        circuit_lengths[k] = lengths[splitter_number(splitters, before, starts[k])];
        circuits[labels[starts[k]]] = (ARC)k;
    }
}

// Stores circuit k in order (m), from offsets[k] on. lengths[i] is the number of steps from splitter i back to the
// start of its circuit, and so the splitter's place. Only for the start it is the length of the circuit, not place 0.
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
