// What the kernels of a search for best matching units know: the argument of all of them, as bmu_cuda.py fills it.
#pragma once

struct Search {
    // What is given, strides in elements, and where results go.
    const void *samples, *codebook;
    long long sample_rows, sample_columns, unit_rows, unit_columns;
    int* units;       // (N, top)
    void* distances;  // (N, top)

    // What they tell each other.
    double* centre;              // (d), then the scale
    void* w;                     // features of units, as the screen wants them
    float* bias;                 // (tiles, TILE)
    void* exact;                 // (tiles, d, TILE): the units as given
    double* unit_lengths;        // (tiles, TILE)
    float* tile_norms;           // (tiles), not below the norm of any unit
    float* x;                    // (panels, rows, PANEL): features of samples
    double* sample_norms;        // (panels, PANEL)
    double* sample_lengths;      // (panels, PANEL)
    float* least;                // (n, tiles)
    unsigned long long* faults;  // of the blocks that packed
    unsigned long long* fault;   // (2): the first of samples and of units, or 0

    double kappa, rounding, split, tiny;  // how far scores may be off
    long long m, first, n;                // units; the samples that are searched for now
    int d, depth, rows, tiles;            // depth: of the features of units; rows: of those of samples
    int unit_blocks, share, top, missing, tensor;
};
