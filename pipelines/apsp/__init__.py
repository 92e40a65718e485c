"""All-pairs shortest paths over the workers, from a graph store to a distances store.

There are four methods (`pipelines.apsp.solve.METHODS`): blocked Floyd-Warshall, described here, in memory
(`pipelines.apsp.in_memory`) and out of core (`pipelines.apsp.out_of_core`); searches (`pipelines.apsp.batched`);
hierarchies (`pipelines.apsp.hierarchy`).

Vertices are divided into pivot blocks, and rows of the matrix D into bands, which are dealt cyclically to the workers
(`pipelines.apsp.layout`). Stage K lets paths pass through the vertices T of block K; (x) is the min-plus product::

    independent         C = closure of D[T, T]            on the worker that owns rows T
    singly dependent    P = C (x) D[T, :]                 there too; P replaces rows T and goes to every worker
    doubly dependent    D = min(D, D[:, T] (x) P)         on every worker, for its own rows

P[:, T] is C, so the third line also does the column panel of the textbook. The owner of block K + 1 updates the rows of
that block first, so that the next pivot block is closed while other rows are updated (look-ahead). A closed vertex,
which may not lie inside a path, is left out of T.

Negative weights are first made non-negative by potentials, and distances are shifted back when they are written [3]_.
This has three advantages. A negative cycle is found in the sparse graph, long before n^3 work would find it. The
rounding of cycles of weight zero cannot look like a negative cycle. The kernels take their fast path.

The matrix stays on the workers (`pipelines.workers.attempts`). Each line of the table above is a kind of task of a
stage graph (`pipelines.apsp.stage_graph`). Tasks are started by Dask's scheduler, or by signals between workers
(`pipelines.workers.executors`). The state is committed to the store from time to time. If a worker dies, all workers
reload the last commit and continue; the result has the same bits.

.. [1] G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", ACM Journal of
   Experimental Algorithmics 8 (2003).
.. [2] B. Lund, J. W. Smith, "A Multi-Stage CUDA Kernel for Floyd-Warshall" (2010).
.. [3] D. B. Johnson, "Efficient algorithms for shortest paths in sparse networks", Journal of the ACM 24 (1977).
"""
