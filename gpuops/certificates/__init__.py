"""Proofs, without a second solver, that shortest distances and paths are right; and the search for negative cycles.

A graph is in compressed sparse rows: `indptr` (n + 1), `indices` (m) and `weights` (m), NumPy arrays, heads in any
order within a row, loops and parallel arcs welcome. `through`, bool (n) or None for all true, says which vertices may
lie inside a path; closed vertices may still begin and end it. There is no CUDA half: a certificate is O(m) on a CPU.
Only `arc_batches`, for graphs that no single device can hold, takes arcs in batches, and also runs on a GPU.

=================== ==================================================================================================
`negative_cycle`    a cycle of negative weight, or potentials that make all weights non-negative
`tight_arcs`        which arcs lie on shortest paths, given the distances alone; how much floats may be off
`distances`         one row of distances is right
`paths`             one row of distances and predecessors is right
`arc_batches`       one row of distances, with or without predecessors, is right: by batches of arcs
=================== ==================================================================================================
"""

from gpuops.certificates.arc_batches import RowProof as RowProof
from gpuops.certificates.certificate import Certificate as Certificate
from gpuops.certificates.certificate import join_certificates as join_certificates
from gpuops.certificates.distances import verify_row as verify_row
from gpuops.certificates.negative_cycle import find_negative_cycle as find_negative_cycle
from gpuops.certificates.negative_cycle import find_potentials as find_potentials
from gpuops.certificates.negative_cycle import nonnegative_weights as nonnegative_weights
from gpuops.certificates.paths import verify_paths as verify_paths
from gpuops.certificates.tight_arcs import Arcs as Arcs
from gpuops.certificates.tight_arcs import TightTree as TightTree
from gpuops.certificates.tight_arcs import arcs_for as arcs_for
from gpuops.certificates.tight_arcs import tight_tree as tight_tree
from gpuops.certificates.tight_arcs import tolerances as tolerances
