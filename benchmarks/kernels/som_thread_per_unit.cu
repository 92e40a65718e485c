// The best matching unit of one sample, unit by unit: a thread per unit, which finishes its sum of squares by itself.
//
//     node_distances   the squares of the distances (M) of one sample to all units
//     least_distance   the unit of the least one, found by a single thread
//
// codebook (M, d) doubles, rows one after the other. One launch of each per sample. The article below
// has a thread for every component of the map instead (som_article.cu).
//
// Launch: said at each kernel.
//
// fierval, "Computing Self-Organizing Maps in a Massively Parallel Way with CUDA. Part 2: Algorithms", 25 September
// 2013.

// Launch: m threads in blocks of any size.
extern "C" __global__ void node_distances(double* distances, const double* sample, const double* codebook, int m,
                                          int d) {
    const int unit = blockIdx.x * blockDim.x + threadIdx.x;
    if (unit >= m) return;
    double sum = 0;
    for (int k = 0; k < d; ++k) {
        const double difference = sample[k] - codebook[(long long)unit * d + k];
        sum += difference * difference;
    }
    distances[unit] = sum;
}

// Launch: one thread.
extern "C" __global__ void least_distance(int* unit, const double* distances, int m) {
    int best = 0;
    for (int j = 1; j < m; ++j) {
        if (distances[j] < distances[best]) best = j;
    }
    *unit = best;
}
