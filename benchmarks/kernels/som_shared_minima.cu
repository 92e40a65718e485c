// The best matching unit of one sample by partial minima: every block halves the distances of its units in shared
// memory.
//
//     partial_minima   the least distance of each block's units, and the unit
//     least_minimum    the least of those, found by a single thread
//
// codebook (M, d) doubles, rows one after the other. One launch of each per sample; of equal distances the lowest unit.
// The article below has a thread for every component of the map instead (som_article.cu).
//
// Launch: said at each kernel.
// Macros: THREADS, of a block of partial_minima.
//
// fierval, "Computing Self-Organizing Maps in a Massively Parallel Way with CUDA. Part 2: Algorithms", 25 September
// 2013.

__device__ inline bool nearer(double x, int i, double y, int j) {
    return x < y || (x == y && i < j);
}

// Launch: m threads in blocks of THREADS.
extern "C" __global__ void partial_minima(double* minima, int* units, const double* sample, const double* codebook,
                                          int m, int d) {
    __shared__ double distances[THREADS];
    __shared__ int nearest[THREADS];
    const int unit = blockIdx.x * THREADS + threadIdx.x;
    double sum = 0;
    for (int k = 0; k < d && unit < m; ++k) {
        const double difference = sample[k] - codebook[(long long)unit * d + k];
        sum += difference * difference;
    }
    distances[threadIdx.x] = unit < m ? sum : __longlong_as_double(0x7ff0000000000000);
    nearest[threadIdx.x] = unit;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        const int other = threadIdx.x + half;
        if (threadIdx.x < half &&
            nearer(distances[other], nearest[other], distances[threadIdx.x], nearest[threadIdx.x])) {
            distances[threadIdx.x] = distances[other];
            nearest[threadIdx.x] = nearest[other];
        }
    }
    if (threadIdx.x == 0) {
        minima[blockIdx.x] = distances[0];
        units[blockIdx.x] = nearest[0];
    }
}

// Launch: one thread.
extern "C" __global__ void least_minimum(int* unit, const double* minima, const int* units, int blocks) {
    int best = 0;
    for (int b = 1; b < blocks; ++b) {
        if (minima[b] < minima[best]) best = b;
    }
    *unit = units[best];
}
