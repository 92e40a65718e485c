// The argument of all kernels of a search for best matching units, as bmu_cuda.py fills it.
#pragma once

struct Search {
    // The given arrays, with strides in elements, and the arrays for the results.
    const void *samples, *codebook;
    long long sample_rows, sample_columns, unit_rows, unit_columns;
    int* units;       // (N, top)
    void* distances;  // (N, top)

    // Scratch arrays, which pass data from kernel to kernel.
    double* centre;              // (d), then the scale
    void* w;                     // features of units, in the layout of the screen
    float* bias;                 // (tiles, TILE)
    void* exact;                 // (tiles, d, TILE): the units as given
    double* unit_lengths;        // (tiles, TILE)
    float* tile_norms;           // (tiles), at least the norm of every unit of the tile
    float* x;                    // (panels, rows, PANEL): features of samples
    double* sample_norms;        // (panels, PANEL)
    double* sample_lengths;      // (panels, PANEL)
    float* least;                // (n, tiles)
    unsigned long long* faults;  // the first fault of each block of `pack`
    unsigned long long* fault;   // (2): the first fault of samples and of units, or 0

    double kappa, rounding, split, tiny;  // constants of the error bound of scores
    long long m, first, n;                // number of units; first sample and number of samples of this chunk
    int d, depth, rows, tiles;            // depth: rows of the features of units; rows: rows of the features of samples
    int unit_blocks, share, top, missing, tensor;
};
