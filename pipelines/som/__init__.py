"""Self-organizing maps from a samples store to a codebook store (T. Kohonen, 1990; learning in batches 1993).

1. Deal the samples: every worker has a range of rows, resident if they fit, else read again in each epoch.
2. Make a first codebook (`pipelines.som.start`), or go on from one.
3. Epoch: every worker finds the best matching units of its samples and sums up the samples of each unit; every worker
   gets the sums of all, adds them, and smooths them into the next codebook (`pipelines.som.epoch`).
4. The first worker writes the codebook, the driver records it: the commit. The next epoch is under way meanwhile.
   On one host the epochs of about half a second are committed together (`pipelines.som.stretches`).
5. After the last epoch, hits and the quantization and topographic error of the result.

Sums are of integers, so the codebook does not depend on how samples are cut and spread, to the last bit. A worker that
is lost takes its sums with it; all begin again at the last commit, and end with the same codebook.
"""
