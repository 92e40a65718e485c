"""Labels of units by the majority of their samples, the purity of this majority, and predictions from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuops.som.metrics import distances_to_all

if TYPE_CHECKING:
    from pipelines.stores.mapping import Mapping
    from pipelines.stores.samples import Samples


class Vote(NamedTuple):
    """The votes of labelled samples for the labels of units."""

    winners: np.ndarray  # int64 (M): the most frequent label (the lowest of equals), -1 without labelled samples
    purity: np.ndarray  # float64 (M): the winner's share of the labelled samples, NaN without labelled samples
    # Pairs of unit and label that occur, in ascending order, and the number of samples of each pair.
    units: np.ndarray
    labels: np.ndarray
    counts: np.ndarray

    def shares(self, label_count: int) -> np.ndarray:
        """Return how many samples of each label each unit has, int64 (M, L)."""
        shares = np.zeros((len(self.winners), label_count), np.int64)
        shares[self.units, self.labels] = self.counts
        return shares

    def total_purity(self) -> float:
        """Return the share of the labelled samples that have the label of their unit; NaN without labelled samples."""
        won = self.counts[self.labels == self.winners[self.units]].sum()
        return float(won / self.counts.sum()) if len(self.counts) else float("nan")


def count_votes(units: np.ndarray, labels: np.ndarray, map_units: int, label_count: int) -> Vote:
    """Return the vote of samples.

    Parameters
    ----------
    units : (N,) int array
        Best matching unit of every sample.
    labels : (N,) int array
        Label of every sample, 0 to `label_count` - 1, or -1 for a sample without a label.
    map_units, label_count : int
        M and L.
    """
    return _vote(*_counted(units, labels, label_count), map_units, label_count)


def vote_of_shares(shares: np.ndarray) -> Vote:
    """Return the vote that has these numbers of samples of each label in each unit (`Vote.shares`), int64 (M, L)."""
    pairs = np.flatnonzero(shares)
    return _vote(pairs, shares.ravel()[pairs], *shares.shape)


def vote_of_mapping(mapping: Mapping | None, samples: Samples | None) -> tuple[Vote, list[str]]:
    """Return the vote of mapped samples, and the names of their labels.

    Parameters
    ----------
    mapping : Mapping
    samples : Samples
        The samples of the mapping, with labels.

    Raises
    ------
    StoreError
        The mapping is of other samples, or the samples have no labels.
    ValueError
        `mapping` or `samples` is None.
    """
    from pipelines.stores.errors import StoreError

    if mapping is None or samples is None:
        raise ValueError(
            "units get labels from the samples mapped to them; name the mapping store (mapping, --mapping)"
        )
    if mapping.samples_digest != samples.digest:
        raise StoreError(f"{mapping.path} does not map {samples.path}; name the right stores")
    names = samples.label_names()
    # Only pairs of unit and label that occur are kept, as most pairs may not occur.
    pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for rows in mapping.ranges():
        found, times = _counted(mapping.units(*rows)[:, 0], samples.labels(*rows), len(names))
        pairs, at = np.unique(np.concatenate([pairs, found]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([counts, times]), len(pairs)).astype(np.int64)
    return _vote(pairs, counts, mapping.grid.units, len(names)), names


def nearest_voters(vote: Vote, codebook: np.ndarray, metric: str) -> np.ndarray:
    """Return for every unit the unit whose vote counts: itself, or the nearest unit with labelled samples.

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
    voters = np.arange(len(codebook))
    if empty.any():
        voters[empty] = voted[distances_to_all(codebook[empty], codebook[voted], metric).argmin(axis=1)]
    return voters


def _counted(units: np.ndarray, labels: np.ndarray, label_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of unit and label that occur, as ascending ``unit * label_count + label``, and their counts."""
    there = labels >= 0
    return np.unique(units[there].astype(np.int64) * label_count + labels[there], return_counts=True)


def _vote(pairs: np.ndarray, counts: np.ndarray, map_units: int, label_count: int) -> Vote:
    units, labels = np.divmod(pairs, max(label_count, 1))
    winners, purity = np.full(map_units, -1), np.full(map_units, np.nan)
    order = np.lexsort((-pairs, counts))  # the winner of a unit comes last
    winners[units[order]] = labels[order]
    totals = np.bincount(units, counts, minlength=map_units)
    purity[units[order]] = counts[order] / totals[units[order]]
    return Vote(winners, purity, units, labels, counts)


def known_labels(labels: np.ndarray) -> np.ndarray:
    """Return which labels of an array (N) are known, bool (N): not NaN, None or pandas' NA."""
    if labels.dtype.kind == "f":
        return ~np.isnan(labels)
    if labels.dtype.kind != "O":
        return np.ones(len(labels), bool)
    return np.array([not (each is None or type(each).__name__ == "NAType" or each != each) for each in labels], bool)


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key by which "kind 2" comes before "kind 10"."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
