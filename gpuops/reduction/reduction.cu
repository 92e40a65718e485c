// Rows of x (rows, length) reduced to one value each: sums, products, extremes and their places, bitwise and logical
// operations.
//
//     reduce              rows of any length, a block for each tile; reads `x` in the first launch, `before` in later
//                         launches
//     reduce_short_rows   rows of at most 256 elements, a warp for each row
//
// A tile is 4,096 elements of a row, as 16 lines of 256. Thread t of a block combines the elements in column t, line
// after line; a butterfly combines the columns (device/butterfly.cuh). The results of a row's tiles form a new row,
// which the next launch reduces in the same way, until there is one tile. So the tree depends only on the length, not
// on the launch. Missing elements of a tile count as the identity. A row of at most one line needs no block: a warp
// holds all its columns, in the same tree.
//
// Launch: any number of blocks of THREADS threads.
// Macros: VALUE: float, double, int or long long; THREADS, the threads of a block: 256.

#include "../device/butterfly.cuh"

using Value = VALUE;

constexpr int WARPS = THREADS / 32, LINES = 16, TILE = THREADS * LINES;
constexpr int BLOCKS = sizeof(Value) == 4 ? 4 : 3;  // blocks that run on a multiprocessor at once, limited by registers

enum { SUM, MINIMUM, MAXIMUM, ARGMIN, ARGMAX, BITWISE_AND, BITWISE_OR, BITWISE_XOR, PRODUCT, ALL, ANY };

// --- Numbers -----------------------------------------------------------------------------------------------------
//
// The key of a number is an integer; keys are in the order of the numbers. -0.0 has the key of +0.0. Keys distinguish
// subnormal numbers: they are made without floating-point arithmetic, which would flush these numbers to zero.

template <class T>
struct Number {  // integers
    using Key = T;
    using Total = long long;
    static constexpr bool INTEGER = true;
    static constexpr Key LOWEST = (Key)1 << (8 * sizeof(Key) - 1);
    __device__ static Total nothing() { return 0; }
    __device__ static Key key(T x) { return x; }
    __device__ static T value(Key key) { return key; }
    __device__ static bool is_nan(T) { return false; }
};

template <>
struct Number<float> {
    using Key = int;
    using Total = float;
    static constexpr bool INTEGER = false;
    static constexpr Key LOWEST = -0x7fffffff - 1;
    __device__ static Total nothing() { return -0.0f; }  // +0.0 would turn a sum of -0.0 into +0.0
    __device__ static Key ordered(Key bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
    __device__ static Key key(float x) {
        const Key bits = __float_as_int(x);
        return bits == LOWEST ? 0 : ordered(bits);
    }
    __device__ static float value(Key key) { return __int_as_float(ordered(key)); }
    __device__ static bool is_nan(float x) { return (__float_as_int(x) & 0x7fffffff) > 0x7f800000; }
};

template <>
struct Number<double> {
    using Key = long long;
    using Total = double;
    static constexpr bool INTEGER = false;
    static constexpr Key LOWEST = -0x7fffffffffffffff - 1;
    __device__ static Total nothing() { return -0.0; }
    __device__ static Key ordered(Key bits) { return bits ^ (bits >> 63 & 0x7fffffffffffffff); }
    __device__ static Key key(double x) {
        const Key bits = __double_as_longlong(x);
        return bits == LOWEST ? 0 : ordered(bits);
    }
    __device__ static double value(Key key) { return __longlong_as_double(ordered(key)); }
    __device__ static bool is_nan(double x) {
        return (__double_as_longlong(x) & 0x7fffffffffffffff) > 0x7ff0000000000000;
    }
};

using Key = Number<Value>::Key;
using Total = Number<Value>::Total;

// --- Operations --------------------------------------------------------------------------------------------------

struct Sum {
    using State = Total;
    using Result = Total;
    __device__ static State identity() { return Number<Value>::nothing(); }
    __device__ static State of(Value x, long long) { return x; }
    __device__ static State combine(State a, State b) { return a + b; }
    __device__ static Result result(State state) { return state; }
};

// A key whose minimum is the extreme: the smallest or the largest number, or NaN if there is one.
template <bool LARGEST>
__device__ inline Key order(Value x) {
    if (Number<Value>::is_nan(x)) return Number<Value>::LOWEST;
    return LARGEST ? ~Number<Value>::key(x) : Number<Value>::key(x);
}

template <bool LARGEST>
struct Extreme {
    using State = Key;
    using Result = Value;
    __device__ static State identity() { return ~Number<Value>::LOWEST; }
    __device__ static State of(Value x, long long) { return order<LARGEST>(x); }
    __device__ static State combine(State a, State b) { return min(a, b); }
    __device__ static Result result(State state) { return Number<Value>::value(LARGEST ? ~state : state); }
};

struct Place {
    Key key;
    long long index;
};

__device__ inline Place of_partner(Place mine, int b) {
    return {of_partner(mine.key, b), of_partner(mine.index, b)};
}

template <bool LARGEST>
struct ArgExtreme {
    using State = Place;
    using Result = long long;
    __device__ static State identity() { return {~Number<Value>::LOWEST, 0x7fffffffffffffff}; }
    __device__ static State of(Value x, long long index) { return {order<LARGEST>(x), index}; }
    __device__ static State combine(State a, State b) {
        return a.key < b.key || (a.key == b.key && a.index < b.index) ? a : b;
    }
    __device__ static Result result(State state) { return state.index; }
};

struct Product {
    using State = Total;
    using Result = Total;
    __device__ static State identity() { return 1; }
    __device__ static State of(Value x, long long) { return x; }
    __device__ static State combine(State a, State b) { return a * b; }
    __device__ static Result result(State state) { return state; }
};

// Whether all elements (AND), or any element, differ from zero.
template <bool AND>
struct Logical {
    using State = int;
    using Result = bool;
    __device__ static State identity() { return AND; }
    __device__ static State of(Value x, long long) { return x != 0; }
    __device__ static State combine(State a, State b) { return AND ? a & b : a | b; }
    __device__ static Result result(State state) { return state != 0; }
};

template <int OPERATOR, class T>
struct Bitwise {
    using State = T;
    using Result = T;
    __device__ static State identity() { return OPERATOR == BITWISE_AND ? ~(T)0 : (T)0; }
    __device__ static State of(T x, long long) { return x; }
    __device__ static State combine(State a, State b) {
        return OPERATOR == BITWISE_AND ? a & b : OPERATOR == BITWISE_OR ? a | b : a ^ b;
    }
    __device__ static Result result(State state) { return state; }
};

// --- Rows --------------------------------------------------------------------------------------------------------

struct Rows {
    const Value* x;
    const void* before;  // states of the tiles of the previous launch; null in the first launch
    long long rows, length;
    void* states;   // receives the states of the tiles, if rows have several tiles
    void* results;  // receives the results of the rows, if each row is one tile
    Place* shared;
};

template <class Operation>
__device__ inline void reduce_tiles(const Rows& r) {
    using State = typename Operation::State;
    const long long tiles = (r.length + TILE - 1) / TILE;
    int turn = 0;
    for (long long tile = blockIdx.x; tile < r.rows * tiles; tile += gridDim.x, turn ^= 1) {
        const long long row = tile / tiles, first = (tile - row * tiles) * TILE, start = row * r.length + first;
        const int size = (int)min(r.length - first, (long long)TILE);
        State mine = Operation::identity();
        if (r.before) {
            const State* const before = (const State*)r.before + start;
            for (int i = threadIdx.x; i < size; i += THREADS) mine = Operation::combine(mine, before[i]);
        } else {
            Value line[LINES];
#pragma unroll
            for (int l = 0; l < LINES; ++l) {
                const int i = l * THREADS + threadIdx.x;
                if (i < size) line[l] = r.x[start + i];
            }
#pragma unroll
            for (int l = 0; l < LINES; ++l) {
                const int i = l * THREADS + threadIdx.x;
                if (i < size) mine = Operation::combine(mine, Operation::of(line[l], first + i));
            }
        }
        mine = in_every_thread<Operation, WARPS>(mine, (State*)(r.shared + turn * THREADS));
        if (threadIdx.x != 0) continue;
        if (tiles > 1) {
            ((State*)r.states)[tile] = mine;
        } else {
            ((typename Operation::Result*)r.results)[row] = Operation::result(mine);
        }
    }
}

template <class Operation>
__device__ inline void reduce_by_warps(const Rows& r) {
    using State = typename Operation::State;
    const int lane = threadIdx.x % 32, length = (int)r.length;
    const long long warps = (long long)gridDim.x * WARPS;
    for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32; row < r.rows; row += warps) {
        State values[WARPS];
#pragma unroll
        for (int j = 0; j < WARPS; ++j) {
            const int i = 32 * j + lane;
            values[j] = i < length ? Operation::of(r.x[row * length + i], i) : Operation::identity();
        }
        const State all = butterfly<Operation, WARPS>(values);
        if (lane == 0) ((typename Operation::Result*)r.results)[row] = Operation::result(all);
    }
}

template <class Operation, bool SHORT>
__device__ inline void reduce_as(const Rows& r) {
    if (SHORT) {
        reduce_by_warps<Operation>(r);
    } else {
        reduce_tiles<Operation>(r);
    }
}

template <class T, bool SHORT>
__device__ inline void reduce_by(int operation, const Rows& r) {
    switch (operation) {
        case SUM:
            return reduce_as<Sum, SHORT>(r);
        case MINIMUM:
            return reduce_as<Extreme<false>, SHORT>(r);
        case MAXIMUM:
            return reduce_as<Extreme<true>, SHORT>(r);
        case ARGMIN:
            return reduce_as<ArgExtreme<false>, SHORT>(r);
        case ARGMAX:
            return reduce_as<ArgExtreme<true>, SHORT>(r);
        case PRODUCT:
            return reduce_as<Product, SHORT>(r);
        case ALL:
            return reduce_as<Logical<true>, SHORT>(r);
        case ANY:
            return reduce_as<Logical<false>, SHORT>(r);
    }
    if constexpr (Number<T>::INTEGER) {
        switch (operation) {
            case BITWISE_AND:
                return reduce_as<Bitwise<BITWISE_AND, T>, SHORT>(r);
            case BITWISE_OR:
                return reduce_as<Bitwise<BITWISE_OR, T>, SHORT>(r);
            case BITWISE_XOR:
                return reduce_as<Bitwise<BITWISE_XOR, T>, SHORT>(r);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    reduce(int operation, const Value* __restrict__ x, const void* __restrict__ before, int later, long long rows,
           long long length, void* states, void* results) {
    __shared__ Place shared[2 * THREADS];  // Place is the largest State; tiles use the two halves alternately
    reduce_by<Value, false>(operation, {x, later ? before : nullptr, rows, length, states, results, shared});
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    reduce_short_rows(int operation, const Value* __restrict__ x, long long rows, long long length, void* results) {
    reduce_by<Value, true>(operation, {x, nullptr, rows, length, nullptr, results, nullptr});
}
