// Finds for each vertex the least tail of an arc on a path of the fewest arcs, for many searches: an arc is on such a
// path if its head is one level after its tail.
//
// Launch: a thread for each arc, and a row of blocks for each search. The searches are read one after the other, so that
// the levels of one search stay in the cache.

constexpr int UNREACHABLE = 0x7fffffff;

extern "C" __global__ void __launch_bounds__(THREADS)
    attach(const int* __restrict__ tails, const int* __restrict__ heads, long long m, const bool* __restrict__ through,
           int has_through, long long n, const int* __restrict__ sources, const int* __restrict__ levels,
           unsigned* predecessors) {
    const long long arc = (long long)blockIdx.x * THREADS + threadIdx.x, row = blockIdx.y * n;
    if (arc >= m) return;
    const int tail = tails[arc], head = heads[arc];
    if (has_through && !through[tail] && tail != sources[blockIdx.y]) return;
    const int level = levels[row + tail];
    if (level == UNREACHABLE || levels[row + head] != level + 1) return;
    if (__ldcg(predecessors + row + head) > (unsigned)tail) atomicMin(predecessors + row + head, (unsigned)tail);
}
