// Learning of self-organizing maps: sums of the samples of every unit in fixed point, and sums over neighbourhoods.
//
// Integer additions are exact in any order, so the result has the same bits whatever the order of thousands of threads.
// `mix` adds products one after the other and rounds each product and each sum, as on the CPU.
//
// Macros: FLOAT, the type of the samples.

constexpr int ROWS = 4;
constexpr unsigned long long NO_FAULT = 1ull << 62;

// Launch: a thread for every dimension of every strip of samples. sums (M, d), counts (M, d) if missing, else (M).
// columns (2, d): the units of the sums, and the bounds of the values.
// fault: NO_FAULT - row of the first row with a value that cannot be added in fixed point, or 0.
extern "C" __global__ void accumulate(unsigned long long* sums, unsigned long long* counts, unsigned long long* fault,
                                      const FLOAT* samples, const int* units, const FLOAT* weights,
                                      const double* columns, long long row_stride, long long column_stride,
                                      long long unit_stride, long long weight_stride, long long n, long long m, int d,
                                      int strip, int weighted, int missing, double count_unit, double largest_weight) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long first = thread / d * strip, last = min(first + strip, n);
    const int k = (int)(thread % d);
    const bool counting = missing || k == 0;
    const double unit = columns[k], largest = columns[d + k];
    long long sum = 0, number = 0, known = -1;  // of unit `known`, not yet added to `sums` and `counts`
    const auto flush = [&] {
        if (known < 0) return;
        if (sum) atomicAdd(sums + known * d + k, (unsigned long long)sum);
        if (counting && number) atomicAdd(counts + (missing ? known * d + k : known), (unsigned long long)number);
    };
    for (long long i = first; i < last; ++i) {
        const long long u = units[i * unit_stride];
        const double x = samples[i * row_stride + k * column_stride];
        const double weight = weighted ? (double)weights[i * weight_stride] : 1.0;
        const bool absent = missing && x != x;
        if (u < 0 || u >= m || !(weight >= 0 && weight <= largest_weight) || !(absent || fabs(x) <= largest)) {
            atomicMax(fault, NO_FAULT - i);
            continue;
        }
        if (u != known) {
            flush();
            known = u;
            sum = number = 0;
        }
        if (absent) continue;
        sum += __double2ll_rn(x * weight * unit);
        number += weighted ? __double2ll_rn(weight * count_unit) : 1;
    }
    flush();
}

// result (batch, rows, width) (+)= h (rows, depth) values (batch, depth, width), over depth in order; += if `add`.
// Launch: grid (width / threads, rows / ROWS, batch), each rounded up.
extern "C" __global__ void mix(double* result, const double* h, const double* values, int rows, int depth, int width,
                               int add) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * ROWS;
    if (c >= width) return;
    result += ((long long)blockIdx.z * rows + row) * width + c;
    values += (long long)blockIdx.z * depth * width + c;
    double sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = add && row + r < rows ? result[(long long)r * width] : 0;
    for (int j = 0; j < depth; ++j) {
        const double value = values[(long long)j * width];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (row + r < rows) sums[r] = __dadd_rn(sums[r], __dmul_rn(h[(long long)(row + r) * depth + j], value));
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row + r < rows) result[(long long)r * width] = sums[r];
    }
}

// result (size / d, d): numerators over denominators, or the codebook where a denominator does not exceed `least`.
// mixed (size / d, width): d numerators, then one denominator for all or d. Launch: a thread per entry.
extern "C" __global__ void means(FLOAT* result, const double* mixed, const FLOAT* codebook, long long size, int d,
                                 int width, double least) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int k = (int)(i % d);
    const double* row = mixed + i / d * width;
    const double denominator = row[width == 2 * d ? d + k : d];
    result[i] = denominator > least ? (FLOAT)(row[k] / denominator) : codebook[i];
}
