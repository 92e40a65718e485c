// Columns of a product, and how they are dealt to threads.
//
// A *column* is an open vertex and a length to add: a destination and 0, or the tail of an arc into a closed
// destination and the length of the arc. Columns are dealt to threads in windows of up to THREADS threads. A thread has
// COLUMNS slots, for columns of one brick or for vertices of the upper tree. Each slot holds one column or none:
//
//     thread_brick  of each thread: its brick; the number of bricks for vertices of the upper tree; -1 for no columns
//     thread_front  of each thread: the first of the rows of `onward` that its product takes. These are the front of
//                   its brick, or the vertices of the upper tree in its slots
//     slot_rows     of each slot: the row of the column in the table of its brick, -1 without a column
//     slot_lengths  of each slot: the length to add; null: all lengths are 0
//     numbers       of each slot: the number of the column in its window. Slots without a column have higher numbers.
//                   Null: neighbouring threads have neighbouring words
#pragma once

#include "../minplus/strip.cuh"
#include "tree.cuh"

constexpr int PACK_WORDS = 32, PACK_DEPTH = 8;  // threads of a block of `gather` and `pack_tables`

// The rows of the table of a thread with this brick.
__device__ inline int depth_of(const Tree& tree, int brick) {
    if (brick < 0) return 0;
    return brick < tree.bricks ? tree.brick_fronts[brick + 1] - tree.brick_fronts[brick] : COLUMNS;
}

// Without `numbers`, threads store to different banks of shared memory, as those of minplus/shallow.cu.
__device__ inline int number_of(int slot, const int* numbers) {
    if (numbers) return numbers[slot];
    const int thread = slot / COLUMNS % THREADS, c = slot % COLUMNS;
    return (c / LANES * THREADS + thread) * LANES + c % LANES;
}

// The distance by a path through a front is the sum of the distance there and the result of this function. `reach` and
// `pack_tables` add the length of an arc at the same point, so that floats are rounded alike.
__device__ inline Element onwards(Element distance, Element length) {
    return shorter(infinity<Element>(), sum(distance, length));
}
