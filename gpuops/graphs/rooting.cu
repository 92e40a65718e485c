// Parents in a forest that is given by its edges, by contraction to stars and back, without walking along paths.
//
// A part is a connected piece of a tree, named by one of its vertices; at first every vertex is a part. In a round
// every part picks one of its edges. Part A joins part B at the other end of A's edge if B comes before A, and before
// the part at the other end of B's edge, in an order drawn anew for every round. So a part that is joined does not
// itself join, and parts contract to stars. In a chain of picks, one part in three joins on average; so for any forest
// the expected number of rounds is O(log n) and the expected work O(n).
//
// Then the rounds are undone in reverse order. The top of a part, `tops`, is its vertex nearest to the root. The top of
// a star is known, and lies in one of the parts of the star. If a joined part contains it, the centre is entered along
// the edge between the two; otherwise the joined part is entered along the edge from the centre.
//
//   pick      one thread for each edge: picks an edge for every part
//   join      one thread for each edge: joins parts
//   relabel   one thread for each edge: an edge that is still between two parts goes to the next list
//   separate  one thread for each part that joined in the round: finds its top, and the parent of one vertex
//
// The picked edges change from run to run; parents depend only on the edges and the roots.
//
// Macro VERTEX: int or long long, the type of vertices and edge numbers.
//
// G. L. Miller, J. H. Reif, "Parallel tree contraction and its application", FOCS 1985.

#include "../device/append.cuh"

using Vertex = VERTEX;

constexpr int THREADS = 256;

__device__ inline long long own_number() {
    return (long long)blockIdx.x * THREADS + threadIdx.x;
}

// A pseudo-random number, different for different parts, because every step is invertible.
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
        const bool swapped = turn(a, round) < turn(b, round);  // the right part may join the left part
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

// All parts of a star may be separated at once. Only the part that contains the star's top changes tops[centre], to a
// vertex of the centre. So each other part finds that it does not contain the top, before and after the change.
extern "C" __global__ void __launch_bounds__(THREADS)
    separate(const Vertex* __restrict__ order, long long size, const Vertex* __restrict__ joined,
             const Vertex* __restrict__ inside, const Vertex* __restrict__ outside, Vertex* tops,
             Vertex* __restrict__ parents) {
    if (own_number() >= size) return;
    const Vertex part = order[own_number()], centre = joined[part], top = tops[centre];
    const Vertex own_end = inside[part], other_end = outside[part];
    Vertex at = top;
    while (at != part && at != centre) at = joined[at];  // at most as many steps as rounds
    if (at == part) {
        tops[part] = top;
        tops[centre] = other_end;
        parents[other_end] = own_end;
    } else {
        tops[part] = own_end;
        parents[own_end] = other_end;
    }
}
