// The best matching unit of one sample, node by node, as published: a thread for every component of the map.
//
//     node_by_node             thread 0 of a block sums its units one after the other and keeps the nearest
//     node_by_node_optimized   the first thread of every unit sums it; the least of a block by atomic minima
//     nearest_of_blocks        for each sample the nearest of its blocks, lowest unit among equals: a warp a sample
//
// map (length) doubles, units of node_length components one after the other; a block has whole units. `squares`
// (length) is global memory, as in the article, which could not use shared memory. One launch a sample; the minima of
// blocks stay until all samples are done.
//
// Two errors of the article are corrected. In its first kernel only thread 0 calls the barrier. In its second kernel
// several threads store the minimum of a block without synchronization, so that the larger of two may stay. Here all
// threads come to the barriers, thread 0 alone sets the minimum to infinity, and atomics lower it: first the distance,
// then the unit.
//
// Launch: said at each kernel.
//
// fierval, "Computing Self-Organizing Maps in a Massively Parallel Way with CUDA. Part 2: Algorithms", 25 September
// 2013.

using Bits = unsigned long long;  // of a distance that is not negative: in the same order

__device__ inline void square(int node_length, int length, const double* node, const double* map, double* squares) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < length) {
        const double difference = map[i] - node[threadIdx.x % node_length];
        squares[i] = difference * difference;
    }
}

// Launch: a thread for every component, in blocks of a multiple of node_length.
extern "C" __global__ void node_by_node(int node_length, int length, const double* node, const double* map,
                                        double* squares, double* least, int* nearest) {
    square(node_length, length, node, map, squares);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const int first = blockIdx.x * blockDim.x;
    double best = 0;
    int unit = -1;
    for (int k = first; k < length && k < first + (int)blockDim.x; k += node_length) {
        double sum = 0;
        for (int j = 0; j < node_length; ++j) sum += squares[k + j];
        if (unit < 0 || sum < best) {
            best = sum;
            unit = k / node_length;
        }
    }
    least[blockIdx.x] = best;
    nearest[blockIdx.x] = unit;
}

// Launch: as node_by_node.
extern "C" __global__ void node_by_node_optimized(int node_length, int length, const double* node, const double* map,
                                                  double* squares, double* least, int* nearest) {
    square(node_length, length, node, map, squares);
    Bits* const best = (Bits*)least + blockIdx.x;
    if (threadIdx.x == 0) {
        *best = 0x7ff0000000000000ull;
        nearest[blockIdx.x] = 0x7fffffff;
    }
    __syncthreads();
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    const bool sums = k < length && threadIdx.x % node_length == 0;
    Bits mine = 0;
    if (sums) {
        double sum = 0;
        for (int j = 0; j < node_length; ++j) sum += squares[k + j];
        mine = (Bits)__double_as_longlong(sum);
        atomicMin(best, mine);
    }
    __syncthreads();
    if (sums && mine == __ldcg(best)) atomicMin(nearest + blockIdx.x, k / node_length);
}

// Launch: a block of 32 threads a sample.
extern "C" __global__ void nearest_of_blocks(const double* least, const int* nearest, int blocks, int* units) {
    const double* const mine = least + (long long)blockIdx.x * blocks;
    const int* const theirs = nearest + (long long)blockIdx.x * blocks;
    double best = __longlong_as_double(0x7ff0000000000000);
    int unit = 0x7fffffff;
    for (int b = threadIdx.x; b < blocks; b += 32) {
        if (mine[b] < best || (mine[b] == best && theirs[b] < unit)) {
            best = mine[b];
            unit = theirs[b];
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, best, step);
        const int other_unit = __shfl_xor_sync(0xffffffffu, unit, step);
        if (other < best || (other == best && other_unit < unit)) {
            best = other;
            unit = other_unit;
        }
    }
    if (threadIdx.x == 0) units[blockIdx.x] = unit;
}
