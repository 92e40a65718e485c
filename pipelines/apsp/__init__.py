"""All-pairs shortest paths: blocked Floyd-Warshall over the workers, from a graph store to a distances store.

Vertices are cut into pivot blocks, rows of the matrix D into bands dealt cyclically to the workers
(`pipelines.apsp.layout`). Stage K lets paths pass through the vertices T of block K; (x) is the min-plus product::

    independent         C = closure of D[T, T]            on the worker that owns rows T
    singly dependent    P = C (x) D[T, :]                 there too; P replaces rows T and goes to every worker
    doubly dependent    D = min(D, D[:, T] (x) P)         on every worker, for its own rows

P[:, T] is C, so the third line also does the textbook's column panel. The owner of block K + 1 does those rows first,
so that the next pivot overlaps the rest (look-ahead). A vertex that may not lie inside a path is left out of T.

Negative weights are made non-negative by potentials first, and distances shifted back when they are written [3]_. So
a negative cycle is found in the sparse graph, long before n^3 work would find it, the rounding of zero cycles cannot
look like one, and the kernels take their fast path.

The matrix stays on the workers (`pipelines.workers.attempts`). Where they can map each other's memory, a task is many
stages (`pipelines.apsp.stretches`), elsewhere one. Every so often the state is committed to the store; if a worker
dies, all workers reload the last commit and go on: same bits.

.. [1] G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", ACM Journal of
   Experimental Algorithmics 8 (2003).
.. [2] B. Lund, J. W. Smith, "A Multi-Stage CUDA Kernel for Floyd-Warshall" (2010).
.. [3] D. B. Johnson, "Efficient algorithms for shortest paths in sparse networks", Journal of the ACM 24 (1977).
"""
