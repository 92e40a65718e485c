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

// The same without weights and missing values, in few units: a block adds up `width` columns of its share of the samples in
// shared memory first. Sums are two words there, because shared memory adds words of 32 bits faster.
// Launch: grid (shares, ceil(d / width)); shared memory for 2 width + 1 words for each unit.
extern "C" __global__ void __launch_bounds__(1024)
    accumulate_in_blocks(unsigned long long* sums, unsigned long long* counts, unsigned long long* fault,
                         const FLOAT* samples, const int* units, const double* columns, long long row_stride,
                         long long column_stride, long long unit_stride, long long n, int m, int d, int width) {
    extern __shared__ unsigned words[];
    const int first_column = blockIdx.y * width, own = min(width, d - first_column), size = m * own;
    unsigned *const low = words, *const high = words + size, *const numbers = high + size;
    for (int at = threadIdx.x; at < 2 * size + m; at += blockDim.x) words[at] = 0;
    __syncthreads();
    const long long share = (n + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    const int rows = (int)max(0ll, min(share, n - first)), down = blockDim.x / own, across = blockDim.x % own;
    constexpr int AT_ONCE = 4;  // loads on their way
    for (int row = threadIdx.x / own, k = threadIdx.x % own; row < rows;) {
        int number[AT_ONCE], of_row[AT_ONCE], of_column[AT_ONCE];
        double values[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            const long long i = first + min(row, rows - 1);
            number[j] = units[i * unit_stride];
            values[j] = samples[i * row_stride + (first_column + k) * column_stride];
            of_row[j] = row;
            of_column[j] = k;
            row += down;
            k += across;
            if (k >= own) k -= own, ++row;
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            if (of_row[j] >= rows) break;
            const int u = number[j], column = first_column + of_column[j];
            if (u < 0 || u >= m || !(fabs(values[j]) <= columns[d + column])) {
                atomicMax(fault, NO_FAULT - (first + of_row[j]));
                continue;
            }
            const unsigned long long value = (unsigned long long)__double2ll_rn(values[j] * columns[column]);
            const int at = u * own + of_column[j];
            const unsigned before = atomicAdd(low + at, (unsigned)value), after = before + (unsigned)value;
            const unsigned upper = (unsigned)(value >> 32) + (after < before);
            if (upper) atomicAdd(high + at, upper);
            if (column == 0) atomicAdd(numbers + u, 1u);
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
        const unsigned long long sum = (unsigned long long)high[at] << 32 | low[at];
        if (sum) atomicAdd(sums + (long long)(at / own) * d + first_column + at % own, sum);
    }
    for (int u = threadIdx.x; u < m && blockIdx.y == 0; u += blockDim.x) {
        if (numbers[u]) atomicAdd(counts + u, (unsigned long long)numbers[u]);
    }
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
