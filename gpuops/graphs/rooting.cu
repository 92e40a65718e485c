// Parents in a forest that is given by its edges, by contraction to stars and back: no walk along a path, however long.
//
// A part is a connected piece of a tree, named by one of its vertices; at first every vertex is one. In a round every
// part picks one of its edges. A part joins the part at the other end of its edge if that one comes before it, and
// before the part that it itself picked, in an order drawn anew in every round: so who is joined joins nobody, and
// parts contract to stars. In a chain of picks that is every third; so rounds are O(log n) and work is O(n), in the
// mean over such orders, whatever the forest. Back in the opposite order, the vertex at which a part is entered,
// `tops`, is known for the star as a whole. It lies in one of its parts; each other one, or the centre, is entered
// along the edge between them.
//
//   pick      a thread an edge: some edge of every part
//   join      a thread an edge: parts join others
//   relabel   a thread an edge: those still between two parts go to the next list
//   separate  a thread a part, which joined in that round: how it is entered, so the parent of one vertex
//
// Which edge is picked changes from run to run; parents depend on edges and roots alone.
//
// Macro VERTEX: int or long long, of edge numbers too.
//
// G. L. Miller, J. H. Reif, "Parallel tree contraction and its application", FOCS 1985.

#include "../device/append.cuh"

using Vertex = VERTEX;

constexpr int THREADS = 256;

__device__ inline long long own_number() {
    return (long long)blockIdx.x * THREADS + threadIdx.x;
}

// Different for different parts: every step can be undone.
__device__ inline unsigned long long turn(Vertex part, int round) {
    unsigned long long x = (unsigned long long)part + 0x9e3779b97f4a7c15ull * (round + 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pick(const Vertex* __restrict__ left, const Vertex* __restrict__ right, long long size, Vertex* picks) {
    const long long i = own_number();
    if (i >= size) return;
    picks[left[i]] = (Vertex)i;
    picks[right[i]] = (Vertex)i;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    join(const Vertex* __restrict__ left, const Vertex* __restrict__ right, const Vertex* __restrict__ left_end,
         const Vertex* __restrict__ right_end, long long size, const Vertex* __restrict__ picks, int round,
         Vertex* __restrict__ joined, Vertex* __restrict__ inside, Vertex* __restrict__ outside,
         Vertex* __restrict__ order, unsigned long long* count) {
    const long long i = own_number();
    Vertex part = 0;
    bool joins = false;
    if (i < size) {
        const Vertex a = left[i], b = right[i];
        const bool swapped = turn(a, round) < turn(b, round);  // the other way around: right joins left
        part = swapped ? b : a;
        const Vertex centre = swapped ? a : b;
        if (picks[part] == (Vertex)i) {
            const Vertex edge = picks[centre];
            const Vertex next = left[edge] == centre ? right[edge] : left[edge];
            joins = turn(centre, round) < turn(next, round);
        }
        if (joins) {
            joined[part] = centre;
            inside[part] = swapped ? right_end[i] : left_end[i];
            outside[part] = swapped ? left_end[i] : right_end[i];
        }
    }
    const unsigned long long place = append<THREADS>(joins, count);
    if (joins) order[place] = part;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    relabel(const Vertex* __restrict__ left, const Vertex* __restrict__ right, const Vertex* __restrict__ left_end,
            const Vertex* __restrict__ right_end, long long size, const Vertex* __restrict__ joined,
            Vertex* __restrict__ new_left, Vertex* __restrict__ new_right, Vertex* __restrict__ new_left_end,
            Vertex* __restrict__ new_right_end, unsigned long long* count) {
    const long long i = own_number();
    Vertex a = 0, b = 0;
    if (i < size) {
        a = joined[left[i]];
        b = joined[right[i]];
    }
    const unsigned long long place = append<THREADS>(a != b, count);
    if (a == b) return;
    new_left[place] = a;
    new_right[place] = b;
    new_left_end[place] = left_end[i];
    new_right_end[place] = right_end[i];
}

// The parts of a star may do this at once. Only the one that has the top moves it, into the centre itself: so each of
// the others finds that it does not have it, before and after.
extern "C" __global__ void __launch_bounds__(THREADS)
    separate(const Vertex* __restrict__ order, long long size, const Vertex* __restrict__ joined,
             const Vertex* __restrict__ inside, const Vertex* __restrict__ outside, Vertex* tops,
             Vertex* __restrict__ parents) {
    if (own_number() >= size) return;
    const Vertex part = order[own_number()], centre = joined[part], top = tops[centre];
    const Vertex own_end = inside[part], other_end = outside[part];
    Vertex at = top;
    while (at != part && at != centre) at = joined[at];  // no more steps than rounds so far
    if (at == part) {
        tops[part] = top;
        tops[centre] = other_end;
        parents[other_end] = own_end;
    } else {
        tops[part] = own_end;
        parents[own_end] = other_end;
    }
}
