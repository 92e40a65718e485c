"""The boundary method: distances of a network that is cut into parts with few vertices on the cuts.

A vertex with an arc to or from another part is on the *boundary* of its own. A path leaves a part, and enters one,
through boundary vertices, so with H the distances among all of them, and D_I the distances within part I,

    D_IJ = D_I[:, B(I)] (x) H[B(I), B(J)] (x) D_J[B(J), :],        for I = J at most D_I

and all of them follow from three small tables (the store `boundary/1`). The steps:

1. cut       the graph into parts (METIS)                                                     `cut`
2. close     each part by itself: D_I                                                         `closures`
3. join      the graph of all boundary vertices, with D_I between those of one part: H        `closures`
4. answer    any block of distances by two products of the depth of a boundary                `gpuops.boundary`

Work is the sum of p^3 over parts of p vertices, |S|^3 for |S| boundary vertices, and 2 b relaxations for each distance
asked for. With closed vertices H is closed over paths with open ones inside, and a closed vertex of a boundary may be
the end of a path but not lie on its way: its column of D_I[:, B(I)] is infinite but in its own row, and so is its row
of D_J[B(J), :] but in its own column. Negative weights are made non-negative by potentials, whose differences are
added to the outer tables again.

H. Djidjev, S. Thulasidasan, G. Chapuis, R. Andonov, D. Lavenier, "Efficient multi-GPU computation of all-pairs shortest
paths", IPDPS 2014.
"""
