// CUDA C++ on a CPU, for tests: what a kernel file needs to be compiled by the system's C++ compiler and run.
//
// A thread of a block is a fiber. It runs until it waits at a barrier or ends, then another one has its turn, in order
// (seed 0) or shuffled; blocks run one after the other, in order or shuffled. Shared memory is poisoned before every
// block. A cp.async poisons its target and delivers at the wait_group of the thread that issued it. A barrier that some
// threads of a block do not reach ends the launch with a message.
//
// With HOST_RACES and -fsanitize=thread, whose calls come here instead of to its library, two threads that touch the same
// byte of shared memory, one of them to store, with no barrier between them, end the launch as well.
//
// In a cooperative launch all blocks are there at once. A thread that reads with ld.acquire waits for others, so the
// next block has its turn, with its own shared memory. Shuffled, threads also take turns at atomics and at loads and
// stores that go past the first-level cache.
//
// No STL and no <math.h>: they would double the time a kernel takes to compile.

// Fibers change by setjmp and longjmp, which make no system call as swapcontext does: a kernel changes millions of times.
// A fortified longjmp would take another stack for a broken one.
#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

extern "C" float fminf(float, float), fmaxf(float, float);
extern "C" double fmin(double, double), fmax(double, double);
extern "C" float fabsf(float), sqrtf(float);
extern "C" double fabs(double), sqrt(double), rint(double), exp(double);

// All shared memory of a program lies in one section of the library, whose ends the linker names.
#define HOST_SHARED __attribute__((section("host_shared")))
extern "C" char __start_host_shared[] __attribute__((visibility("hidden")));
extern "C" char __stop_host_shared[] __attribute__((visibility("hidden")));

// The kernels too are compiled inside a nameless namespace: what is `inline` could share no section with the rest.
namespace {

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
dim3 gridDim, blockDim, blockIdx, threadIdx;
constexpr int warpSize = 32;

// --- Threads of a block ------------------------------------------------------------------------------------------

namespace host {

constexpr unsigned MAX_THREADS = 1024, MAX_COPIES = 256, STACK = 128 << 10, DYNAMIC_SHARED = 227 << 10;
constexpr int POISON = 0xfb;  // a large negative number in every dtype, so that a minimum shows it

enum State { RUNNING, POLLING, SPINNING, AT_BARRIER, AT_WARP_BARRIER, ENDED, FAILED };
enum Outcome { BLOCK_ENDED, BLOCK_SPINS, BLOCK_FAILED };

struct Copy {
    void* to;
    const void* from;
    unsigned bytes, group;
};

struct Fiber {
    jmp_buf registers;  // of where it waits
    char* stack;
    bool begun;  // it has a place on its stack to go on from
    State state;
    const char* place;             // of the barrier it waits at, in words
    unsigned mask;                 // of the warp's lanes it waits for
    unsigned long long exchanged;  // what other lanes of the warp may read
    Copy copies[MAX_COPIES];       // issued and not delivered
    unsigned copy_count, groups;   // groups: committed so far
    struct Product* products;      // issued and not waited for
    unsigned product_count, product_groups;
};

Fiber* fibers;  // of the block that runs
Fiber* all_fibers;
unsigned current, threads, fiber_count;
unsigned launch_seed, turns;
bool cooperative, advanced;  // advanced: since the last look, some thread did more than wait
bool gave_way;               // the thread had its turn until it gave way to others
unsigned polls_ended;        // by what was waited for
jmp_buf scheduler;
char message[400];
void (*kernel)();
void** arguments;
void (*call)(void (*kernel)(), void** arguments);

HOST_SHARED __attribute__((aligned(128), used)) char dynamic_shared[DYNAMIC_SHARED];

Fiber& me() {
    return fibers[current];
}

void wait(State state, const char* place, unsigned mask = 0) {
    Fiber& fiber = me();
    fiber.state = state;
    fiber.place = place;
    fiber.mask = mask;
    if (!_setjmp(fiber.registers)) _longjmp(scheduler, 1);
}

void fail(const char* what) {
    wait(FAILED, what);
}

// What ended in one block begins anew in the next.
void run_threads() {
    for (;;) {
        call(kernel, arguments);
        wait(ENDED, nullptr);
    }
}

// The thread has its turn until it waits.
__attribute__((noinline)) void go_on(Fiber& fiber) {
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.registers, 1);
    static ucontext_t context;
    if (!fiber.stack) fiber.stack = (char*)malloc(STACK);
    fiber.begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack;
    context.uc_stack.ss_size = STACK;
    makecontext(&context, run_threads, 0);
    setcontext(&context);
}

unsigned random_below(unsigned bound, unsigned* state) {
    *state = *state * 1664525u + 1013904223u;
    return (unsigned)((unsigned long long)*state * bound >> 32);
}

void put_in_order(unsigned* order, unsigned count, unsigned seed, unsigned* state) {
    for (unsigned i = 0; i < count; ++i) order[i] = i;
    for (unsigned i = count; seed && i > 1; --i) {
        const unsigned j = random_below(i, state), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}

// All threads in the warp of t that its mask names; the last warp may have fewer than 32.
template <class Action>
void for_lanes(unsigned t, Action action) {
    const unsigned first = t / warpSize * warpSize;
    for (unsigned lane = 0; lane < warpSize && first + lane < threads; ++lane) {
        if (fibers[t].mask >> lane & 1) action(fibers[first + lane]);
    }
}

// --- Races in shared memory

unsigned epoch;  // of the block: what was touched in another one is in order
unsigned warp_epochs[MAX_THREADS / 32];

#ifdef HOST_RACES
#define UNSEEN __attribute__((no_sanitize("thread")))

struct Touch {
    unsigned epoch, warp_epoch, thread;
};
struct Touches {
    Touch store, loads[2];  // the last ones; of two threads that load, a third one that stores races with both
};

UNSEEN bool in_order(const Touch& touch) {
    return touch.epoch != epoch || touch.thread == current ||
           (touch.thread / warpSize == current / warpSize && touch.warp_epoch != warp_epochs[current / warpSize]);
}

UNSEEN void touched(const void* memory, size_t bytes, bool stores) {
    static Touches* touches;
    const size_t first = (const char*)memory - __start_host_shared, size = __stop_host_shared - __start_host_shared;
    if (first >= size || cooperative) return;
    if (!touches) touches = (Touches*)calloc(size, sizeof(Touches));
    const Touch now = {epoch, warp_epochs[current / warpSize], current};
    for (size_t i = first; i < first + bytes; ++i) {
        Touches& of = touches[i];
        if (!in_order(of.store)) fail(stores ? "races: stores twice" : "races: loads what is stored");
        if (stores && !(in_order(of.loads[0]) && in_order(of.loads[1]))) fail("races: stores what is loaded");
        (stores ? of.store : of.loads[!in_order(of.loads[0])]) = now;
    }
}

#define HOST_TOUCH(bytes)                                           \
    extern "C" UNSEEN void __tsan_read##bytes(void* memory) {       \
        touched(memory, bytes, false);                              \
    }                                                               \
    extern "C" UNSEEN void __tsan_write##bytes(void* memory) {      \
        touched(memory, bytes, true);                               \
    }                                                               \
    extern "C" UNSEEN void __tsan_unaligned_read##bytes(void* m) {  \
        touched(m, bytes, false);                                   \
    }                                                               \
    extern "C" UNSEEN void __tsan_unaligned_write##bytes(void* m) { \
        touched(m, bytes, true);                                    \
    }
HOST_TOUCH(1)
HOST_TOUCH(2)
HOST_TOUCH(4)
HOST_TOUCH(8)
HOST_TOUCH(16)
extern "C" UNSEEN void __tsan_read_range(void* memory, size_t bytes) {
    touched(memory, bytes, false);
}
extern "C" UNSEEN void __tsan_write_range(void* memory, size_t bytes) {
    touched(memory, bytes, true);
}
extern "C" UNSEEN void __tsan_init() {}
extern "C" UNSEEN void __tsan_func_entry(void*) {}
extern "C" UNSEEN void __tsan_func_exit() {}
#else
void touched(const void*, size_t, bool) {}
#endif

// With `holds`, some warps stay where they are, so that others get ahead.
bool release_warps(bool holds, unsigned* random) {
    bool released = false, held = false;
    for (unsigned t = 0; t < threads; ++t) {
        if (t % warpSize == 0) held = holds && random_below(2, random);
        if (held || fibers[t].state != AT_WARP_BARRIER) continue;
        bool complete = true;
        for_lanes(t, [&](Fiber& lane) {
            complete &= lane.state == AT_WARP_BARRIER && lane.mask == fibers[t].mask && lane.place == fibers[t].place;
        });
        if (complete) for_lanes(t, [](Fiber& lane) { lane.state = RUNNING; });
        warp_epochs[t / warpSize] += complete;
        released |= complete;
    }
    return released;
}

const char* where(const Fiber& fiber) {
    return fiber.state == ENDED ? "has ended" : fiber.place;
}

// Now and then another thread has its turn, between what is atomic.
void preempt() {
    if (!cooperative || !launch_seed || random_below(8, &turns)) return;
    gave_way = true;
    wait(RUNNING, nullptr);
}

// Shared memory, without the part that kernels ask for at launch.
void copy_shared(char* to, const char* from, size_t size) {
    const size_t before = dynamic_shared - __start_host_shared, after = before + DYNAMIC_SHARED;
    memcpy(to, from, before);
    memcpy(to + after, from + after, size - after);
}

unsigned bulk_copies;  // issued and not delivered

void start_block() {
    bulk_copies = 0;
    ++epoch;
    memset(__start_host_shared, POISON, __stop_host_shared - __start_host_shared);
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = fibers[t];
        fiber.begun &= fiber.state == ENDED;  // others stayed behind in a launch that failed
        fiber.state = RUNNING;
        fiber.copy_count = fiber.groups = 0;
        fiber.product_count = fiber.product_groups = 0;
    }
}

// Until all its threads have ended, or wait for other blocks.
Outcome run_block(unsigned seed, unsigned* random) {
    for (unsigned t = 0; t < threads; ++t) {
        if (fibers[t].state == SPINNING) fibers[t].state = RUNNING;
    }
    for (;;) {
        unsigned order[MAX_THREADS], running = 0, spinning = 0;
        const unsigned ended = polls_ended;
        put_in_order(order, threads, seed, random);
        for (unsigned i = 0; i < threads; ++i) {
            current = order[i];
            if (me().state != RUNNING && me().state != POLLING) continue;
            running += me().state == RUNNING;
            threadIdx.x = current % blockDim.x;
            threadIdx.y = current / blockDim.x % blockDim.y;
            threadIdx.z = current / blockDim.x / blockDim.y;
            gave_way = false;
            go_on(me());
            advanced |= me().state != SPINNING && !gave_way;
            if (me().state == FAILED) {
                snprintf(message, sizeof message, "thread %u: %s", current, me().place);
                return BLOCK_FAILED;
            }
        }
        if (running || polls_ended != ended) continue;
        if ((seed && release_warps(true, random)) || release_warps(false, random)) continue;
        for (unsigned t = 0; t < threads; ++t) {
            if (fibers[t].state == POLLING) {
                snprintf(message, sizeof message, "thread %u: %s, which does not come", t, fibers[t].place);
                return BLOCK_FAILED;
            }
        }
        for (unsigned t = 0; t < threads; ++t) spinning += fibers[t].state == SPINNING;
        if (spinning) return BLOCK_SPINS;
        for (unsigned t = 0; t < threads; ++t) {
            if (fibers[t].state != fibers[0].state || strcmp(where(fibers[t]), where(fibers[0]))) {
                snprintf(message, sizeof message, "divergent barrier: thread 0 %s, thread %u %s", where(fibers[0]), t,
                         where(fibers[t]));
                return BLOCK_FAILED;
            }
        }
        if (fibers[0].state == ENDED) return BLOCK_ENDED;
        if (fibers[0].state == AT_WARP_BARRIER) {
            snprintf(message, sizeof message, "the mask of a warp names lanes that wait for other lanes");
            return BLOCK_FAILED;
        }
        for (unsigned t = 0; t < threads; ++t) fibers[t].state = RUNNING;
        ++epoch;
    }
}

// Returns nullptr, or what went wrong.
const char* launch(const dim3& grid, const dim3& block, unsigned seed, bool all_at_once) {
    gridDim = grid;
    blockDim = block;
    threads = block.x * block.y * block.z;
    if (threads == 0 || threads > MAX_THREADS) return "a block has 1 to 1024 threads";
    const unsigned blocks = grid.x * grid.y * grid.z;
    if (blocks == 0) return "the grid is empty";
    const unsigned needed = threads * (all_at_once ? blocks : 1);
    if (needed > fiber_count) {
        all_fibers = (Fiber*)realloc(all_fibers, needed * sizeof(Fiber));
        memset(all_fibers + fiber_count, 0, (needed - fiber_count) * sizeof(Fiber));
        fiber_count = needed;
    }
    const size_t shared_size = __stop_host_shared - __start_host_shared;
    char* const shared = all_at_once ? (char*)malloc(blocks * shared_size) : nullptr;
    cooperative = all_at_once;
    launch_seed = seed;
    unsigned random = turns = seed * 2654435761u;
    unsigned* const order = (unsigned*)malloc(blocks * sizeof(unsigned));
    bool* const ended = (bool*)calloc(blocks, sizeof(bool));
    put_in_order(order, blocks, seed, &random);
    fibers = all_fibers;
    const char* error = nullptr;
    for (unsigned b = 0; b < blocks && all_at_once; ++b) {
        fibers = all_fibers + b * threads;
        start_block();
        copy_shared(shared + b * shared_size, __start_host_shared, shared_size);
    }
    for (unsigned left = blocks; left && !error; put_in_order(order, blocks, seed, &random)) {
        advanced = false;
        for (unsigned i = 0; i < blocks && !error; ++i) {
            const unsigned b = order[i];
            if (ended[b]) continue;
            blockIdx.x = b % grid.x;
            blockIdx.y = b / grid.x % grid.y;
            blockIdx.z = b / grid.x / grid.y;
            if (all_at_once) {
                fibers = all_fibers + b * threads;
                copy_shared(__start_host_shared, shared + b * shared_size, shared_size);
            } else {
                start_block();
            }
            const Outcome outcome = run_block(seed, &random);
            if (all_at_once) copy_shared(shared + b * shared_size, __start_host_shared, shared_size);
            ended[b] = outcome == BLOCK_ENDED;
            left -= ended[b];
            if (outcome == BLOCK_FAILED) error = message;
            if (outcome == BLOCK_SPINS && !all_at_once)
                error = "waits for other blocks in a launch that is not cooperative";
        }
        if (!error && left && !advanced) error = "all blocks wait for each other";
    }
    free(order);
    free(ended);
    free(shared);
    return error;
}

// --- Entries -----------------------------------------------------------------------------------------------------

template <class T>
constexpr char KIND = __is_class(T) ? 'V' : 'i';
template <class T>
constexpr char KIND<T*> = 'p';
template <>
constexpr char KIND<float> = 'f';
template <>
constexpr char KIND<double> = 'f';

template <int... I>
struct Indices {};
template <int N, int... I>
struct IndicesBelow : IndicesBelow<N - 1, N - 1, I...> {};
template <int... I>
struct IndicesBelow<0, I...> {
    using Type = Indices<I...>;
};

template <class... P, int... I>
void call_with(void (*entry)(P...), void** values, Indices<I...>) {
    entry(*(P*)values[I]...);
}

// The kind and the size of every parameter, such as p8i8i4; V: a struct.
template <class... P>
const char* parameters(void (*)(P...)) {
    static char text[8 * sizeof...(P) + 1];
    char* end = text;
    ((end += sprintf(end, "%c%d", KIND<P>, (int)sizeof(P))), ...);
    return text;
}

template <class... P>
const char* launch_entry(void (*entry)(P...), const dim3& grid, const dim3& block, unsigned seed, void** values,
                         bool cooperative) {
    kernel = (void (*)())entry;
    arguments = values;
    call = [](void (*f)(), void** v) { call_with((void (*)(P...))f, v, typename IndicesBelow<sizeof...(P)>::Type()); };
    return launch(grid, block, seed, cooperative);
}

#define HOST_ENTRY(name)                                                                                     \
    extern "C" const char* parameters_##name() {                                                             \
        return host::parameters(name);                                                                       \
    }                                                                                                        \
    extern "C" const char* launch_##name(const unsigned* g, const unsigned* b, unsigned seed, void** values, \
                                         int cooperative) {                                                  \
        return host::launch_entry(name, {g[0], g[1], g[2]}, {b[0], b[1], b[2]}, seed, values, cooperative);  \
    }

}  // namespace host

// --- The language ------------------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static HOST_SHARED
#define __constant__
#define alignas(bytes) __attribute__((aligned(bytes)))  // the keyword may not follow `static`
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __CUDA_ARCH__ 900

struct alignas(8) int2 {
    int x, y;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};

#define HOST_MIN_MAX(T)       \
    inline T min(T a, T b) {  \
        return b < a ? b : a; \
    }                         \
    inline T max(T a, T b) {  \
        return a < b ? b : a; \
    }
HOST_MIN_MAX(int)
HOST_MIN_MAX(unsigned)
HOST_MIN_MAX(long)
HOST_MIN_MAX(unsigned long)
HOST_MIN_MAX(long long)
HOST_MIN_MAX(unsigned long long)
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
inline double min(double a, double b) {
    return fmin(a, b);
}
inline double max(double a, double b) {
    return fmax(a, b);
}

namespace host {

template <class To, class From>
To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits, read as another type");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// Two int16 side by side.
template <class Operation>
unsigned in_halves(Operation operation, unsigned a, unsigned b) {
    const unsigned low = (unsigned short)operation((short)a, (short)b);
    const unsigned high = (unsigned short)operation((short)(a >> 16), (short)(b >> 16));
    return high << 16 | low;
}

// Subnormal numbers as zeros of their sign.
float flushed(float x) {
    return x > -0x1p-126f && x < 0x1p-126f ? bits<float>(bits<unsigned>(x) & 0x80000000u) : x;
}

}  // namespace host

inline float __int_as_float(int x) {
    return host::bits<float>(x);
}
inline int __float_as_int(float x) {
    return host::bits<int>(x);
}
inline float __uint_as_float(unsigned x) {
    return host::bits<float>(x);
}
inline unsigned __float_as_uint(float x) {
    return host::bits<unsigned>(x);
}
inline double __longlong_as_double(long long x) {
    return host::bits<double>(x);
}
inline long long __double_as_longlong(double x) {
    return host::bits<long long>(x);
}

inline int __viaddmin_s32(int a, int b, int c) {
    return min((int)((unsigned)a + (unsigned)b), c);
}
inline int __vimin3_s32(int a, int b, int c) {
    return min(min(a, b), c);
}
inline unsigned __vimin3_u32(unsigned a, unsigned b, unsigned c) {
    return min(min(a, b), c);
}
inline unsigned __vadd2(unsigned a, unsigned b) {
    return host::in_halves([](short x, short y) { return x + y; }, a, b);
}
inline unsigned __vmins2(unsigned a, unsigned b) {
    return host::in_halves([](short x, short y) { return y < x ? y : x; }, a, b);
}
inline unsigned __viaddmin_s16x2(unsigned a, unsigned b, unsigned c) {
    return __vmins2(__vadd2(a, b), c);
}
inline unsigned __vimin3_s16x2(unsigned a, unsigned b, unsigned c) {
    return __vmins2(__vmins2(a, b), c);
}

inline unsigned __vminu2(unsigned a, unsigned b) {
    const unsigned low = min(a & 0xffff, b & 0xffff), high = min(a >> 16, b >> 16);
    return low | high << 16;
}
inline unsigned __vimin3_u16x2(unsigned a, unsigned b, unsigned c) {
    return __vminu2(__vminu2(a, b), c);
}

inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline long long __double2ll_rn(double x) {
    return (long long)rint(x);
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}
inline int __popc(unsigned x) {  // the builtin function may call a library, which is not there when races are found
    int bits = 0;
    for (; x; x &= x - 1) ++bits;
    return bits;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz(x) : 32;
}
template <class T>
T __ldg(const T* address) {
    return *address;
}

template <class T>
T __ldcg(const T* address) {
    host::preempt();
    return *address;
}
template <class T>
void __stcg(T* address, T value) {
    host::preempt();
    *address = value;
}
template <class T>
void __stcs(T* address, T value) {
    host::preempt();
    *address = value;
}

// Fibers take turns at barriers, and where one gives way on purpose: everything between is atomic.
namespace host {

template <class T>
T replace(T* address, T value) {
    const T old = *address;
    *address = value;
    return old;
}

}  // namespace host

#define HOST_ATOMIC(name, result)                 \
    template <class T>                            \
    T name(T* address, T value) {                 \
        host::preempt();                          \
        return host::replace(address, T(result)); \
    }
HOST_ATOMIC(atomicExch, value)
HOST_ATOMIC(atomicAdd, *address + value)
HOST_ATOMIC(atomicMin, min(*address, value))
HOST_ATOMIC(atomicMax, max(*address, value))
HOST_ATOMIC(atomicOr, *address | value)
template <class T>
T atomicCAS(T* address, T expected, T value) {
    host::preempt();
    return host::replace(address, *address == expected ? value : *address);
}
inline void __nanosleep(unsigned) {
    host::wait(host::SPINNING, "waits for another block");
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// --- Barriers, and the warp --------------------------------------------------------------------------------------

#define HOST_QUOTE(x) #x
#define HOST_TEXT(x) HOST_QUOTE(x)
#define __syncthreads() host::wait(host::AT_BARRIER, "waits at " __FILE__ ":" HOST_TEXT(__LINE__))

constexpr unsigned HOST_ALL_LANES = 0xffffffffu;

inline void __syncwarp(unsigned mask = HOST_ALL_LANES) {
    static const char place[] = "waits at __syncwarp";
    host::wait(host::AT_WARP_BARRIER, place, mask);
}

namespace host {

unsigned lane() {
    return current % warpSize;
}

// `read` sees the values that the lanes of the mask gave, while none of them goes on.
template <class T, class Read>
void exchange(unsigned mask, T value, Read read) {
    static const char place[] = "waits for its warp to exchange values";
    static_assert(sizeof(T) <= sizeof(me().exchanged), "a lane gives one word");
    if (!(mask >> lane() & 1)) fail("calls for an exchange whose mask leaves it out");
    memcpy(&me().exchanged, &value, sizeof value);
    wait(AT_WARP_BARRIER, place, mask);
    read();
    wait(AT_WARP_BARRIER, place, mask);
}

template <class T>
T from_lane(unsigned mask, T value, unsigned source) {
    exchange(mask, value, [&] {
        const unsigned t = current / warpSize * warpSize + source;
        if (t >= threads || !(mask >> source & 1)) fail("reads from a lane that is not in the mask");
        memcpy(&value, &fibers[t].exchanged, sizeof value);
    });
    return value;
}

}  // namespace host

template <class T>
T __shfl_sync(unsigned mask, T value, int source) {
    return host::from_lane(mask, value, source % warpSize);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
    return host::from_lane(mask, value, host::lane() ^ lanes);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
    return host::from_lane(mask, value, host::lane() + delta < warpSize ? host::lane() + delta : host::lane());
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
    return host::from_lane(mask, value, host::lane() >= delta ? host::lane() - delta : host::lane());
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned votes = 0;
    host::exchange(mask, predicate, [&] {
        const unsigned first = host::current - host::lane();
        for (unsigned i = 0; i < warpSize && first + i < host::threads; ++i) {
            if (mask >> i & 1 && (int)host::fibers[first + i].exchanged) votes |= 1u << i;
        }
    });
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline unsigned __match_any_sync(unsigned mask, unsigned value) {
    unsigned same = 0;
    host::exchange(mask, value, [&] {
        const unsigned first = host::current - host::lane();
        for (unsigned i = 0; i < warpSize && first + i < host::threads; ++i) {
            if (mask >> i & 1 && (unsigned)host::fibers[first + i].exchanged == value) same |= 1u << i;
        }
    });
    return same;
}
inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}

template <class F>
unsigned host_reduce(unsigned mask, unsigned value, unsigned result, F combine) {
    host::exchange(mask, value, [&] {
        const unsigned first = host::current - host::lane();
        for (unsigned i = 0; i < warpSize && first + i < host::threads; ++i) {
            if (mask >> i & 1) result = combine(result, (unsigned)host::fibers[first + i].exchanged);
        }
    });
    return result;
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    return host_reduce(mask, value, 0, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    return host_reduce(mask, value, 0, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    return host_reduce(mask, value, ~0u, [](unsigned a, unsigned b) { return a < b ? a : b; });
}

// --- PTX: asm("op.type %0, %1;" : ...) comes here as ptx_op_type(operand 0, operand 1) ------------------------------

// 32 bits reach all of this library from where its shared memory starts.
inline size_t __cvta_generic_to_shared(const void* shared) {
    return (const char*)shared - __start_host_shared;
}

template <unsigned WORDS, class T>
void host_load_shared(unsigned shared, T* const (&registers)[WORDS]) {
    const char* from = __start_host_shared + shared;
    if ((size_t)from % (WORDS * sizeof(T))) host::fail("ld.shared.v: the address is not aligned to the vector");
    if (shared >= (size_t)(__stop_host_shared - __start_host_shared)) host::fail("ld.shared outside of shared memory");
    for (unsigned i = 0; i < WORDS; ++i) memcpy(registers[i], from + i * sizeof(T), sizeof(T));
}
inline void ptx_ld_shared_v4_b32(unsigned& x, unsigned& y, unsigned& z, unsigned& w, unsigned shared) {
    host_load_shared<4, unsigned>(shared, {&x, &y, &z, &w});
}
inline void ptx_ld_shared_v2_f64(double& x, double& y, unsigned shared) {
    host_load_shared<2, double>(shared, {&x, &y});
}

inline void ptx_prefetch_global_L1(const void*) {}

inline void ptx_add_rn_f32(float& sum, float a, float b) {
    sum = a + b;
}

inline void ptx_cp_async_ca_shared_global(unsigned shared, const void* global, unsigned bytes) {
    host::Fiber& fiber = host::me();
    void* to = __start_host_shared + shared;
    if (bytes != 4 && bytes != 8 && bytes != 16) host::fail("cp.async copies 4, 8 or 16 bytes");
    if (((size_t)to | (size_t)global) % bytes) host::fail("cp.async: an address is not a multiple of the bytes");
    if (shared >= (size_t)(__stop_host_shared - __start_host_shared)) host::fail("cp.async outside of shared memory");
    if (fiber.copy_count == host::MAX_COPIES) host::fail("cp.async: more on their way than this shim remembers");
    host::touched(to, bytes, true);
    memset(to, host::POISON, bytes);
    fiber.copies[fiber.copy_count++] = {to, global, bytes, fiber.groups};
}
inline void ptx_cp_async_cg_shared_global(unsigned shared, const void* global, unsigned bytes) {
    if (bytes != 16) host::fail("cp.async.cg copies 16 bytes");
    ptx_cp_async_ca_shared_global(shared, global, bytes);
}
inline void ptx_cp_async_commit_group() {
    ++host::me().groups;
}
inline void ptx_cp_async_wait_group(unsigned pending) {
    host::Fiber& fiber = host::me();
    unsigned kept = 0;
    for (unsigned i = 0; i < fiber.copy_count; ++i) {
        const host::Copy copy = fiber.copies[i];
        if (copy.group + pending < fiber.groups) {
            host::touched(copy.to, copy.bytes, true);
            memcpy(copy.to, copy.from, copy.bytes);
        } else {
            fiber.copies[kept++] = copy;
        }
    }
    fiber.copy_count = kept;
}
inline void ptx_cp_async_wait_all() {
    ptx_cp_async_commit_group();
    ptx_cp_async_wait_group(0);
}

inline void __trap() {
    host::fail("__trap");
}

// Barriers in shared memory: a bulk copy poisons its target, and delivers when a thread polls its barrier.
struct HostBarrier {
    unsigned expected : 12, pending : 12, parity : 8;
    int bytes;  // announced and not yet come

    static HostBarrier& at(unsigned shared) {
        if (shared % 8) host::fail("mbarrier: the address is not a multiple of 8");
        return *(HostBarrier*)(__start_host_shared + shared);
    }
    void look() {
        if (pending || bytes) return;
        parity ^= 1;
        pending = expected;
    }
};
struct HostBulkCopy {
    char* to;
    const void* from;
    unsigned bytes, barrier;
} host_bulk_copies[256];

inline void ptx_mbarrier_init_shared_cta_b64(unsigned barrier, unsigned arrivals) {
    HostBarrier::at(barrier) = {arrivals, arrivals, 0, 0};
}
inline void ptx_fence_mbarrier_init_release_cluster() {}
inline void ptx_mbarrier_arrive_expect_tx_shared_cta_b64(unsigned barrier, unsigned bytes) {
    HostBarrier& to = HostBarrier::at(barrier);
    if (!to.pending) host::fail("mbarrier: more arrivals than expected");
    --to.pending;
    to.bytes += bytes;
    to.look();
}
inline void ptx_mbarrier_arrive_shared_cta_b64(unsigned barrier) {
    ptx_mbarrier_arrive_expect_tx_shared_cta_b64(barrier, 0);
}
inline void ptx_cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(unsigned shared, const void* global,
                                                                               unsigned bytes, unsigned barrier) {
    char* to = __start_host_shared + shared;
    if (bytes % 16 || ((size_t)to | (size_t)global) % 16) host::fail("cp.async.bulk: not a multiple of 16");
    if (to + bytes > __stop_host_shared) host::fail("cp.async.bulk outside of shared memory");
    if (host::bulk_copies == 256) host::fail("cp.async.bulk: more on their way than this shim remembers");
    memset(to, host::POISON, bytes);
    host_bulk_copies[host::bulk_copies++] = {to, global, bytes, barrier};
}
inline void ptx_mbarrier_try_wait_parity_shared_cta_b64(unsigned& ended, unsigned barrier, unsigned parity) {
    HostBarrier& of = HostBarrier::at(barrier);
    unsigned kept = 0;
    for (unsigned i = 0; i < host::bulk_copies; ++i) {
        const HostBulkCopy copy = host_bulk_copies[i];
        if (copy.barrier == barrier) {
            memcpy(copy.to, copy.from, copy.bytes);
            of.bytes -= copy.bytes;
            of.look();
        } else {
            host_bulk_copies[kept++] = copy;
        }
    }
    host::bulk_copies = kept;
    if (of.parity == parity) host::wait(host::POLLING, "waits for a phase of an mbarrier");
    ended = of.parity != parity;
    host::polls_ended += ended;
}
inline void ptx_setp_ne_b32(unsigned& to, int a, int b) {
    to = a != b;
}
inline void ptx_selp_u32(unsigned& to, unsigned a, unsigned b, unsigned which) {
    to = which ? a : b;
}
template <class Count>
void ptx_setmaxnreg_inc_sync_aligned_u32(Count) {}
template <class Count>
void ptx_setmaxnreg_dec_sync_aligned_u32(Count) {}

inline void ptx_prefetch_global_L2(const void*) {}

// Tensor cores: pairs of halves in registers, the first one in the low bits.
inline void ptx_cvt_rn_f16x2_f32(unsigned& pair, float high, float low) {
    const _Float16 halves[2] = {(_Float16)low, (_Float16)high};
    memcpy(&pair, halves, sizeof pair);
}
inline void ptx_mov_b32(unsigned& low, unsigned& high, unsigned pair) {
    low = pair & 0xffff;
    high = pair >> 16;
}
inline void ptx_cvt_f32_f16(float& value, unsigned half) {
    value = (float)host::bits<_Float16>((unsigned short)half);
}

// Each lane gets its word of matrices of 8 rows of 16 bytes; lanes 8 i to 8 i + 7 pass the addresses of matrix i.
template <unsigned MATRICES, class... Words>
inline void ptx_ldmatrix(unsigned address, Words&... words) {
    static const char place[] = "waits for its warp at ldmatrix";
    static unsigned rows[host::MAX_THREADS][4];
    const unsigned lane = host::lane(), first = host::current - lane;
    if (address % 16) host::fail("ldmatrix: the address of a row is not a multiple of 16");
    if (lane < 8 * MATRICES) {
        host::touched(__start_host_shared + address, 16, false);
        memcpy(rows[host::current], __start_host_shared + address, 16);
    }
    host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
    unsigned* const results[] = {&words...};
    for (unsigned i = 0; i < MATRICES; ++i) *results[i] = rows[first + i * 8 + lane / 4][lane % 4];
    host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& a, unsigned& b, unsigned& c, unsigned& d,
                                                         unsigned address) {
    ptx_ldmatrix<4>(address, a, b, c, d);
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x2_shared_b16(unsigned& a, unsigned& b, unsigned address) {
    ptx_ldmatrix<2>(address, a, b);
}

// d (16 x 8) = c + a (16 x 16) b (16 x 8), added up in float64 and rounded once; a device is less exact.
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& d0, float& d1, float& d2, float& d3,
                                                                  unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                                  unsigned b0, unsigned b1, float c0, float c1,
                                                                  float c2, float c3) {
    static const char place[] = "waits for its warp at mma.sync";
    static unsigned given[host::MAX_THREADS][6];
    const unsigned lane = host::lane(), first = host::current - lane;
    const unsigned own[6] = {a0, a1, a2, a3, b0, b1};
    memcpy(given[host::current], own, sizeof own);
    host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
    const auto half = [&](unsigned group, unsigned k, unsigned which) {  // of the pair that holds column or row k
        const unsigned word = given[first + group * 4 + k % 8 / 2][which];
        return (double)(float)host::bits<_Float16>((unsigned short)(k % 2 ? word >> 16 : word));
    };
    const auto dot = [&](unsigned row, unsigned column, float start) {
        double sum = start;
        for (unsigned k = 0; k < 16; ++k) {
            sum += half(row % 8, k, row / 8 + k / 8 * 2) * half(column, k, 4 + k / 8);
        }
        return (float)sum;
    };
    const unsigned row = lane / 4, column = lane % 4 * 2;
    const float results[4] = {dot(row, column, c0), dot(row, column + 1, c1), dot(row + 8, column, c2),
                              dot(row + 8, column + 1, c3)};
    host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
    d0 = results[0];
    d1 = results[1];
    d2 = results[2];
    d3 = results[3];
}

// Products of a warpgroup: d (64 x 2 COUNT) = (add ? d : 0) + a (64 x 16) b (16 x 2 COUNT), computed when they are waited
// for; COUNT sums of a thread.
struct host::Product {
    unsigned count;
    float* sums[96];
    _Float16 a[2][16];        // the two rows of this thread, where a comes from registers
    unsigned long long of_a;  // else the description of a
    unsigned long long of_b;
    bool add, in_registers;
    unsigned group;
};
constexpr unsigned MAX_PRODUCTS = 64;

inline _Float16 host_of_matrices(unsigned long long description, unsigned row, unsigned k) {
    if (description >> 62) host::fail("wgmma: this shim knows no swizzled operands");
    const unsigned start = (description & 0x3fff) << 4, along_k = (description >> 16 & 0x3fff) << 4,
                   along_rows = (description >> 32 & 0x3fff) << 4;
    _Float16 value;
    memcpy(&value, __start_host_shared + start + row / 8 * along_rows + k / 8 * along_k + row % 8 * 16 + k % 8 * 2, 2);
    return value;
}

template <unsigned COUNT, class... Operands>
void host_wgmma(Operands&&... operands) {
    static const char place[] = "waits for its warp at wgmma";
    static unsigned given[host::MAX_THREADS][4];
    void* const at[] = {(void*)&operands...};
    constexpr bool in_registers = sizeof...(operands) == COUNT + 9;
    host::Fiber& fiber = host::me();
    if (!fiber.products) fiber.products = (host::Product*)malloc(MAX_PRODUCTS * sizeof(host::Product));
    if (fiber.product_count == MAX_PRODUCTS) host::fail("wgmma: more on their way than this shim remembers");
    host::Product& product = fiber.products[fiber.product_count++];
    product.count = COUNT;
    for (unsigned i = 0; i < COUNT; ++i) product.sums[i] = (float*)at[i];
    product.in_registers = in_registers;
    product.group = fiber.product_groups;
    const unsigned lane = host::lane(), first = host::current - lane;
    if (in_registers) {
        for (unsigned i = 0; i < 4; ++i) given[host::current][i] = *(unsigned*)at[COUNT + i];
        host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
        for (unsigned k = 0; k < 16; ++k) {
            for (unsigned row = 0; row < 2; ++row) {
                const unsigned word = given[first + lane / 4 * 4 + k % 8 / 2][row + k / 8 * 2];
                product.a[row][k] = host::bits<_Float16>((unsigned short)(k % 2 ? word >> 16 : word));
            }
        }
        product.of_b = *(unsigned long long*)at[COUNT + 4];
        product.add = *(unsigned*)at[COUNT + 5];
    } else {
        product.of_a = *(unsigned long long*)at[COUNT];
        product.of_b = *(unsigned long long*)at[COUNT + 1];
        product.add = *(unsigned*)at[COUNT + 2];
    }
    host::wait(host::AT_WARP_BARRIER, place, 0xffffffff);
}
template <class... Operands>
void ptx_wgmma_mma_async_sync_aligned_m64n128k16_f32_f16_f16(Operands&&... operands) {
    host_wgmma<64>(operands...);
}
template <class... Operands>
void ptx_wgmma_mma_async_sync_aligned_m64n192k16_f32_f16_f16(Operands&&... operands) {
    host_wgmma<96>(operands...);
}
inline void ptx_wgmma_fence_sync_aligned() {}
inline void ptx_wgmma_commit_group_sync_aligned() {
    ++host::me().product_groups;
}
inline void ptx_wgmma_wait_group_sync_aligned(unsigned pending) {
    host::Fiber& fiber = host::me();
    const unsigned lane = host::lane(), warp = host::current / warpSize % 4;
    unsigned kept = 0;
    for (unsigned i = 0; i < fiber.product_count; ++i) {
        const host::Product product = fiber.products[i];
        if (product.group + pending >= fiber.product_groups) {
            fiber.products[kept++] = product;
            continue;
        }
        for (unsigned row = 0; row < 2; ++row) {
            double a[16];
            for (unsigned k = 0; k < 16; ++k) {
                const unsigned of_group = warp * 16 + row * 8 + lane / 4;
                a[k] = (float)(product.in_registers ? product.a[row][k] : host_of_matrices(product.of_a, of_group, k));
            }
            for (unsigned j = 0; j < product.count / 2; ++j) {
                float& sum = *product.sums[j / 2 * 4 + row * 2 + j % 2];
                double exact = product.add ? sum : 0;
                const unsigned column = j / 2 * 8 + lane % 4 * 2 + j % 2;
                for (unsigned k = 0; k < 16; ++k) exact += a[k] * (float)host_of_matrices(product.of_b, column, k);
                sum = (float)exact;
            }
        }
    }
    fiber.product_count = kept;
    host::wait(host::AT_WARP_BARRIER, "waits for its warp at wgmma.wait_group", 0xffffffff);
}

// Whoever reads like this waits for what another block stores.
inline void ptx_red_release_gpu_global_add_u32(unsigned* address, unsigned value) {
    atomicAdd(address, value);
}
inline void ptx_ld_acquire_gpu_global_u32(unsigned& value, const unsigned* address) {
    host::wait(host::SPINNING, "waits for another block");
    value = *address;
}

// Two blocks to a multiprocessor.
#define smid (blockIdx.x / 2)
inline void ptx_mov_u32(unsigned& to, unsigned from) {
    to = from;
}

template <class T>
void host_load_relaxed(T& value, const void* address) {
    host::preempt();
    if ((size_t)address % sizeof(T)) host::fail("ld.relaxed: the address is not aligned to the word");
    value = *(const T*)address;
}
template <class T>
void host_store_relaxed(void* address, T value) {
    host::preempt();
    if ((size_t)address % sizeof(T)) host::fail("st.relaxed: the address is not aligned to the word");
    *(T*)address = value;
}
inline void ptx_ld_relaxed_gpu_global_u16(unsigned short& value, const void* address) {
    host_load_relaxed(value, address);
}
inline void ptx_ld_relaxed_gpu_global_u32(unsigned& value, const void* address) {
    host_load_relaxed(value, address);
}
inline void ptx_ld_relaxed_gpu_global_u64(unsigned long long& value, const void* address) {
    host_load_relaxed(value, address);
}
inline void ptx_st_relaxed_gpu_global_u16(void* address, unsigned short value) {
    host_store_relaxed(address, value);
}
inline void ptx_st_relaxed_gpu_global_u32(void* address, unsigned value) {
    host_store_relaxed(address, value);
}
inline void ptx_st_relaxed_gpu_global_u64(void* address, unsigned long long value) {
    host_store_relaxed(address, value);
}
// The two halves of a vector may be there at different times.
inline void ptx_st_relaxed_gpu_global_v2_u64(void* address, unsigned long long low, unsigned long long high) {
    if ((size_t)address % 16) host::fail("st.v2.u64: the address is not aligned to the vector");
    host_store_relaxed(address, low);
    host_store_relaxed((unsigned long long*)address + 1, high);
}
inline void ptx_ld_relaxed_gpu_global_v2_u64(unsigned long long& low, unsigned long long& high, const void* address) {
    if ((size_t)address % 16) host::fail("ld.v2.u64: the address is not aligned to the vector");
    host_load_relaxed(low, address);
    host_load_relaxed(high, (const unsigned long long*)address + 1);
}

#define HOST_PTX(name, T, value)                                     \
    template <class D, class A, class B>                             \
    void ptx_##name(D& d, A first, B second) {                       \
        const T a = host::bits<T>(first), b = host::bits<T>(second); \
        d = host::bits<D>((T)(value));                               \
    }
HOST_PTX(add_s32, int, (unsigned)a + (unsigned)b)
HOST_PTX(add_u32, unsigned, a + b)
HOST_PTX(min_s32, int, min(a, b))
HOST_PTX(min_u32, unsigned, min(a, b))
HOST_PTX(add_s16x2, unsigned, __vadd2(a, b))
HOST_PTX(min_s16x2, unsigned, __vmins2(a, b))
HOST_PTX(add_f32, float, a + b)
HOST_PTX(add_rn_f32, float, a + b)
HOST_PTX(add_ftz_f32, float, host::flushed(host::flushed(a) + host::flushed(b)))
HOST_PTX(add_rn_ftz_f32, float, host::flushed(host::flushed(a) + host::flushed(b)))
HOST_PTX(min_f32, float, fminf(a, b))
HOST_PTX(min_ftz_f32, float, fminf(host::flushed(a), host::flushed(b)))
HOST_PTX(add_f64, double, a + b)

}  // namespace
