"""Self-organizing maps from a samples store to a codebook store (T. Kohonen, 1990; learning in batches 1993).

1. Deal the samples: every worker has a range of rows. The rows stay in memory if they fit; else each epoch reads them.
2. Make a first codebook (`pipelines.som.start`), or take a given codebook.
3. Epoch: every worker finds the best matching units of its samples and sums up the samples of each unit. Then every
   worker gets the sums of all workers, adds them, and smooths them into the next codebook (`pipelines.som.epoch`).
4. Commit: the first worker writes the codebook, and the driver records it. The next epoch runs meanwhile. Epochs of
   about half a second in all are committed together (`pipelines.som.training`).
5. After the last epoch, compute hits, quantization error and topographic error of the last codebook.

All sums are sums of integers, so the codebook is the same, to the last bit, however samples are cut and spread. If a
worker is lost, its sums are lost; all workers begin again at the last commit, and end with the same codebook.
"""
