// Tests whether every arc is paired with an arc that enters the vertex it leaves.
//
// predecessors (m) is the stable argsort of heads (m), so heads are sorted in its order, and a row indptr[v] to
// indptr[v + 1] is right if its first and its last arc are. If a row is wrong, `wrong` is set to 1. Launch: any number
// of threads.
//
// Macro HEAD, the type of heads: int or long long.

extern "C" __global__ void check_pairing(int* wrong, const long long* indptr, const HEAD* heads,
                                         const long long* predecessors, long long n) {
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long v = (long long)blockIdx.x * blockDim.x + threadIdx.x; v < n; v += threads) {
        const long long first = indptr[v], last = indptr[v + 1] - 1;
        if (first <= last && (heads[predecessors[first]] != v || heads[predecessors[last]] != v)) *wrong = 1;
    }
}
