// Distinct values, look-and-say and cyclic spectra as published: a thread for every element, several launches.
//
//     mark_heads      flags (n) of the elements of a sorted array that differ from the one before
//     scatter         x where flags are set, to the places that an inclusive scan of the flags gives
//     say_naive       count and digit of every run at twice the place of its head, zeros elsewhere
//     say_flagged     the same, and flags of what is not to be left out
//     cyclic_grid     every sum by itself, in a grid of 16 x 16 blocks: O(n^3) additions
//     cyclic_streamed the sums of one more element, from those of the launch before
//
// There, repeats are marked by 0, which takes away the value 0 itself; here flags are kept apart. As published, the
// digits of look-and-say are int8 in say_naive and int32 in say_flagged.
//
// Launch: a thread for every element in blocks of any size; cyclic_grid: in blocks of two dimensions.
//
// fierval, "Walking the Euler Path: GPU for the Road", 2016; "Look-and-say: [Alea.]CUDA", 6 January 2016; "Non-linear
// Thinking with CUDA", 8 September 2015.

extern "C" __global__ void mark_heads(const int* sorted, long long n, int* flags) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) flags[i] = i == 0 || sorted[i] != sorted[i - 1];
}

// places (n): the inclusive scan of flags.
extern "C" __global__ void scatter(const int* x, const int* flags, const int* places, long long n, int* kept) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && flags[i] > 0) kept[places[i] - 1] = x[i];
}

template <class Digit>
__device__ inline bool say(const Digit* term, int n, int i, Digit* said) {
    const Digit digit = term[i];
    const bool head = i == 0 || term[i - 1] != digit;
    int run = 0;
    if (head) {
        for (run = 1; i + run < n && term[i + run] == digit;) ++run;
    }
    said[2 * i] = (Digit)run;
    said[2 * i + 1] = head ? digit : (Digit)0;
    return head;
}

extern "C" __global__ void say_naive(const signed char* term, int n, signed char* said) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) say(term, n, i, said);
}

extern "C" __global__ void say_flagged(const int* term, int n, int* said, int* flags) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) flags[2 * i] = flags[2 * i + 1] = say(term, n, i, said);
}

// sums (n - 1, n): of length 1, 2, ... by beginning.
extern "C" __global__ void cyclic_grid(const int* masses, int n, int* sums) {
    const int begin = blockIdx.x * blockDim.x + threadIdx.x, length = blockIdx.y * blockDim.y + threadIdx.y;
    if (begin >= n || length >= n - 1) return;
    int sum = 0;
    for (int i = 0; i <= length; ++i) {
        const int place = begin + i;
        sum += masses[place >= n ? place - n : place];
    }
    sums[(long long)length * n + begin] = sum;
}

extern "C" __global__ void cyclic_streamed(const int* masses, int n, int* sums, int length) {
    const int begin = blockIdx.x * blockDim.x + threadIdx.x;
    if (begin >= n) return;
    const int place = begin + length;
    const int mass = masses[place >= n ? place - n : place];
    sums[(long long)length * n + begin] = (length ? sums[(long long)(length - 1) * n + begin] : 0) + mass;
}
