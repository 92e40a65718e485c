// Looks for a cycle among the arcs that improved distances last.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor.
// Macros: the macros of search.cuh.

#include "search.cuh"

// Leaves finished = 1 if the chain of `parents` from some vertex leads back to the vertex. ancestors (n) is scratch.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    look_for_cycle(const int* __restrict__ parents, int* ancestors, int n, Control* control) {
    __shared__ Tally tallies[2];
    Grid grid{control, tallies[0], tallies[1]};
    const long long first = (long long)blockIdx.x * THREADS + threadIdx.x;
    const int threads = gridDim.x * THREADS;
    grid.start();
    for (long long v = first; v < n; v += threads) __stcg(ancestors + v, parents[v] < 0 ? (int)v : parents[v]);
    grid.barrier();
    // After a step, ancestors are twice as far. A thread that is ahead of other threads does no harm.
    bool moves = true;
    for (long long reach = 1; moves && reach < n; reach *= 2) {
        long long moved = 0;
        for (long long v = first; v < n; v += threads) {
            const int near = __ldcg(ancestors + v), far = __ldcg(ancestors + near);
            if (far != near) __stcg(ancestors + v, far);
            moved += far != near;
        }
        __syncwarp();
        Grid::count(grid.local.open, moved);
        grid.barrier();
        moves = grid.last.open;
    }
    // The farthest ancestor of a vertex has a parent only if it is on a cycle.
    long long around = 0;
    for (long long v = first; v < n; v += threads) around += parents[__ldcg(ancestors + v)] >= 0;
    __syncwarp();
    Grid::count(grid.local.open, around);
    grid.barrier();
    if (first == 0) control->finished = grid.last.open > 0;
}
