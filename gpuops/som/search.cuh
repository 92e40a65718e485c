// The argument of all kernels of a search for best matching units, as bmu_cuda.py fills it.
#pragma once

// Bounds that hold for every unit of a tile. The last two are of one half product: the norm of what rounding to halves
// takes from the features that a sample multiplies, and the sum of what it takes from the others.
struct alignas(16) TileBound {
    float norm, residual, offset;
};

struct Search {
    // The given arrays, with strides in elements, and the arrays for the results.
    const void *samples, *codebook;
    long long sample_rows, sample_columns, unit_rows, unit_columns;
    int* units;       // (N, top)
    void* distances;  // (N, top)

    // Scratch arrays, which pass data from kernel to kernel.
    double* centre;            // (d), then the scale
    void* w;                   // features of units, in the layout of the screen
    float* fine;               // (tiles, rows, TILE): features in float32; for the screen in float32 the same as w
    float* bias;               // (tiles, TILE)
    void* exact;               // (tiles, d, TILE): the units as given; if `matched` (quads, d, QUAD)
    double* unit_lengths;      // (tiles, TILE)
    TileBound* tile_bounds;    // (tiles)
    void* x;                   // features of samples, in the layout of the screen
    double* sample_norms;      // (panels, PANEL)
    double* sample_residuals;  // (panels, PANEL), for tensor cores
    double* sample_lengths;    // (panels, PANEL)
    float* least;              // (n, tiles)
    int* products;             // tensor cores: half products that make a score of this chunk, 1 or 3
    int* nearest;              // (n): the tile whose least score is least
    int* ranks;                // (n): how many samples with this tile came before
    int* tile_counts;          // (tiles): samples with this tile
    int* order;                // (n): the samples in the order of these tiles; if `matched` those left to `match_left`
    int* left;                 // (2): number of these samples; batches of samples that `match` has taken
    unsigned long long* faults;  // the first fault of each block of `pack`
    unsigned long long* fault;   // (2): the first fault of samples and of units, or 0

    // Memory of the plan, which outlives the search: of some samples of the last chunk, how many tiles the bound of one
    // half product keeps, and how many samples these are.
    unsigned* kept;

    double kappa, rounding, split, tiny;     // constants of the error bound of scores
    double kappa_of_one;                     // kappa of one half product
    double kappa_of_sifted, tiny_of_sifted;  // constants of the scores of `decide`
    long long m, first, n;                   // number of units; first sample and number of samples of this chunk
    int d, depth, rows, tiles;  // depth: rows of the features of units; rows: rows of the features of samples
    int slab;                   // tensor cores: dimensions that pass through shared memory together
    int unit_blocks, share, share_of_one, top, missing, tensor;
    int sorted;   // whether `decide` takes samples in `order`
    int matched;  // whether `match` finds the units of the samples, without a screen
};
