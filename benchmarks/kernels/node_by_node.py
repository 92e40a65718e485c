"""Best matching units node by node, as published in 2013: host side of benchmarks/kernels/som_article.cu.

All memory is allocated once. Each block has one minimum for each sample; these minima are reduced once at the end, on
the host as published, or on the device. `one_by_one` is the serial loop of the article, on one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from benchmarks.harness import KERNELS
from gpuops._cuda import Program

MOST_THREADS = 256
PROGRAM = Program("som_article.cu", ("node_by_node", "node_by_node_optimized", "nearest_of_blocks"), folder=KERNELS)


@dataclass(frozen=True)
class Variant:
    title: str
    entry: str
    on_device: bool  # whether the device, not the host, reduces the minima of blocks


VARIANTS = (
    Variant("node by node, minima on the host", "node_by_node", False),
    Variant("node by node, minima on the device", "node_by_node", True),
    Variant("optimized, minima on the host", "node_by_node_optimized", False),
    Variant("optimized, minima on the device", "node_by_node_optimized", True),
)


def threads_of(dimensions: int) -> int:
    """Return the threads of a block: the most that hold whole units, 252 for 12 dimensions."""
    return MOST_THREADS // dimensions * dimensions


class Search:
    """Memory for a search of the units of (n, d) samples on an (m, d) codebook, both float64, CuPy."""

    def __init__(self, xp: Any, samples: Any, codebook: Any):
        n, self.dimensions = samples.shape
        if not 0 < self.dimensions <= MOST_THREADS or codebook.shape[1] != self.dimensions:
            raise ValueError(f"a block has whole units of 1 to {MOST_THREADS} components, not {codebook.shape[1]}")
        self.samples, self.map = samples, codebook.ravel()
        self.threads = threads_of(self.dimensions)
        self.blocks = -(-len(self.map) // self.threads)
        self.squares = xp.empty((len(self.map),), np.float64)
        self.least = xp.empty((n, self.blocks), np.float64)
        self.nearest = xp.empty((n, self.blocks), np.int32)
        self.units = xp.empty((n,), np.int32)

    def run(self, variant: Variant) -> Any:
        """Return the units, (n,) int32; a NumPy array if the host reduces the minima."""
        sizes = np.int32(self.dimensions), np.int32(len(self.map))
        for sample, least, nearest in zip(self.samples, self.least, self.nearest, strict=True):
            arguments = (*sizes, sample, self.map, self.squares, least, nearest)
            PROGRAM.launch(variant.entry, self.blocks, arguments, threads=self.threads)
        if not variant.on_device:
            return _reduced(self.least.get(), self.nearest.get())
        arguments = (self.least, self.nearest, np.int32(self.blocks), self.units)
        PROGRAM.launch("nearest_of_blocks", len(self.units), arguments, threads=32)
        return self.units


@njit(cache=True)
def _reduced(least, nearest):
    units = np.empty(len(least), np.int32)
    for i in range(len(least)):
        best = 0
        for b in range(1, least.shape[1]):
            if least[i, b] < least[i, best]:
                best = b
        units[i] = nearest[i, best]
    return units


@njit(cache=True)
def one_by_one(samples, codebook):
    """Return the units, (n,) int32, by the serial loop on one core."""
    units = np.empty(len(samples), np.int32)
    for i in range(len(samples)):
        best = np.inf
        for unit in range(len(codebook)):
            distance = 0.0
            for k in range(samples.shape[1]):
                difference = samples[i, k] - codebook[unit, k]
                distance += difference * difference
            if distance < best:
                best = distance
                units[i] = unit
    return units
