"""Labels of units from those of their samples: the majority, how pure it is, and what it predicts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuops.som.metrics import distances_to_all

if TYPE_CHECKING:
    from pipelines.stores.mapping import Mapping
    from pipelines.stores.samples import Samples


class Vote(NamedTuple):
    """How the labelled samples of units voted."""

    winners: np.ndarray  # int64 (M): the most frequent label, the first of equals, -1 where there is none
    purity: np.ndarray  # float64 (M): its share of the unit's labelled samples, NaN where there are none
    units: np.ndarray  # pairs of unit and label that occur, in rising order,
    labels: np.ndarray
    counts: np.ndarray  # and how often

    def shares(self, label_count: int) -> np.ndarray:
        """(M, L) int64: how many samples of each label each unit has."""
        shares = np.zeros((len(self.winners), label_count), np.int64)
        shares[self.units, self.labels] = self.counts
        return shares

    def total_purity(self) -> float:
        """The share of the labelled samples whose label is that of their unit; NaN where there are none."""
        won = self.counts[self.labels == self.winners[self.units]].sum()
        return float(won / self.counts.sum()) if len(self.counts) else float("nan")


def count_votes(units: np.ndarray, labels: np.ndarray, map_units: int, label_count: int) -> Vote:
    """The vote of samples.

    Parameters
    ----------
    units : (N,) int array
        Their best matching units.
    labels : (N,) int array
        From 0 to `label_count` - 1, or -1 for none.
    map_units, label_count : int
        M and L.
    """
    there = labels >= 0
    pairs, counts = np.unique(units[there].astype(np.int64) * label_count + labels[there], return_counts=True)
    return _vote(pairs, counts, map_units, label_count)


def vote_of_mapping(mapping: Mapping | None, samples: Samples | None) -> tuple[Vote, list[str]]:
    """The vote of mapped samples, and the names of their labels.

    Parameters
    ----------
    mapping : Mapping
    samples : Samples
        Those of the mapping, with labels.

    Raises
    ------
    pipelines.stores.StoreError
        The mapping is of other samples, or these have no labels.
    ValueError
        There is no mapping, or there are no samples.
    """
    from pipelines.stores.schema import StoreError

    if mapping is None or samples is None:
        raise ValueError("the labels of units are those of their samples; name their mapping store (--mapping)")
    if mapping.samples_digest != samples.digest:
        raise StoreError(f"{mapping.path} does not map {samples.path}; name the right stores")
    names = samples.label_names()
    # Pairs of unit and label that occur, as there may be far more that do not.
    pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for rows in mapping.ranges():
        labels, units = samples.labels(*rows), mapping.units(*rows)[:, 0].astype(np.int64)
        found, times = np.unique(units[labels >= 0] * len(names) + labels[labels >= 0], return_counts=True)
        pairs, at = np.unique(np.concatenate([pairs, found]), return_inverse=True)
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, at, np.concatenate([counts, times]))
        counts = sums
    return _vote(pairs, counts, mapping.grid.units, len(names)), names


def voted_classes(vote: Vote, codebook: np.ndarray, metric: str) -> np.ndarray:
    """The label of every unit: its winner, or that of the nearest unit with a vote.

    Parameters
    ----------
    vote : Vote
    codebook : (M, d) float array
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (M,) int64 array

    Raises
    ------
    ValueError
        No sample has a label.
    """
    voted, empty = np.flatnonzero(vote.winners >= 0), vote.winners < 0
    if not len(voted):
        raise ValueError("no sample has a label, so that no unit can have one; name samples with labels")
    classes = vote.winners.copy()
    if empty.any():
        nearest = distances_to_all(codebook[empty], codebook[voted], metric).argmin(axis=1)
        classes[empty] = vote.winners[voted[nearest]]
    return classes


def _vote(pairs: np.ndarray, counts: np.ndarray, map_units: int, label_count: int) -> Vote:
    units, labels = np.divmod(pairs, max(label_count, 1))
    winners, purity = np.full(map_units, -1), np.full(map_units, np.nan)
    order = np.lexsort((-pairs, counts))  # the winner of a unit comes last
    winners[units[order]] = labels[order]
    totals = np.bincount(units, counts, minlength=map_units)
    purity[units[order]] = counts[order] / totals[units[order]]
    return Vote(winners, purity, units, labels, counts)


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key by which kind 2 comes before kind 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
