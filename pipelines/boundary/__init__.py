"""The boundary method: distances of a network that is cut into parts with few vertices on the cuts.

A vertex with an arc to or from another part is a *boundary* vertex of its part. A path leaves and enters parts through
boundary vertices. With B(I) the boundary vertices of part I, H the distances among all boundary vertices, D_I the
distances by paths within part I, and (x) the min-plus product,

    D_IJ = D_I[:, B(I)] (x) H[B(I), B(J)] (x) D_J[B(J), :],        for I = J at most D_I

so all distances follow from three small tables (the store `boundary/1`). The steps:

1. cut       the graph into parts (METIS)                                                     `cut`
2. close     each part alone: D_I                                                             `closures`
3. join      the graph of all boundary vertices, with D_I between vertices of one part: H     `closures`
4. answer    any block of distances by two products of the depth of a boundary                `gpuops.boundary`

The work is the sum of p^3 over parts of p vertices, |S|^3 for |S| boundary vertices, and 2 b relaxations for each
requested distance, with b boundary vertices in a part. A closed vertex may be the end of a path, but not lie inside it,
so H counts only paths whose inner vertices are open. For a closed boundary vertex, its column of D_I[:, B(I)] is
infinite except in its own row, and its row of D_J[B(J), :] is infinite except in its own column. Negative weights are
made non-negative by potentials for closing; the tables have the distances for the given weights.

H. Djidjev, S. Thulasidasan, G. Chapuis, R. Andonov, D. Lavenier, "Efficient multi-GPU computation of all-pairs shortest
paths", IPDPS 2014.
"""
