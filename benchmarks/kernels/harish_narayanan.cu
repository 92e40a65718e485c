// Floyd-Warshall with one thread per task: w[i, j] = min(w[i, j], w[i, k] + w[k, j]), one launch for each k.
//
// w (n, n), rows one after the other. A task reads three words of global memory and writes one, so memory is the bound,
// or the L2 cache where the matrix fits into it. Row k and column k do not change in step k, as w[k, k] = 0: no thread
// waits for another.
//
// Launch: grid (n, n / THREADS), x counting rows; THREADS threads, a macro.
//
// P. Harish, P. J. Narayanan, "Accelerating large graph algorithms on the GPU using CUDA", LNCS 4873, 2007, as
// described in B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, section 3.1.

// Launch: grid (n, n / THREADS), x counting rows; THREADS threads.
extern "C" __global__ void relax_all(float* w, int n, int k) {
    const long long i = blockIdx.x, j = blockIdx.y * THREADS + threadIdx.x;
    w[i * n + j] = fminf(w[i * n + j], w[i * n + k] + w[(long long)k * n + j]);
}
