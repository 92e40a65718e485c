"""Labels that a map predicts: a sample gets the label that most labelled samples of its unit have."""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.som.classes import nearest_voters, vote_of_mapping
from pipelines.som.tables import check_export, write_units
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, open_mapping
from pipelines.stores.samples import Samples
from pipelines.stores.schema import counted


class Prediction(NamedTuple):
    """The accuracy of predicted labels."""

    purity: float  # share of the voting samples that have the label of their unit
    labelled: int  # samples that have a label, to compare with the predicted label
    score: float  # share of the labelled samples whose label was predicted; NaN if no sample has a label

    def describe(self) -> str:
        """Return a line for the user. Shares are rounded down, so that 100 % means all samples."""
        purity = f"mean purity {math.floor(100 * self.purity + 1e-9) / 100:.2f}"
        if not self.labelled:
            return purity
        share = math.floor(1000 * self.score + 1e-9) / 10
        return f"{share:.1f} % of {counted(self.labelled, 'labelled sample')} predicted correctly; {purity}"


def predict_labels(
    mapping: Mapping | str | os.PathLike[str],
    voters: Mapping | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    codebook: Codebook | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Prediction:
    """Write the units of the samples of a mapping, and the labels predicted for the samples, to the table `path`.

    Parameters
    ----------
    mapping : Mapping or path of a mapping store
        Samples whose labels are predicted.
    voters : Mapping or path of a mapping store
        Samples with labels, mapped to the same map; may be `mapping` itself. Every unit gets the label that most of its
        samples have; of equally frequent labels, the first. A unit without labelled samples gets the label of the
        nearest unit with labelled samples.
    path : .csv, .tsv (or .csv.gz, .tsv.gz) or .parquet
        The columns that `tilepath.export_map` writes for units, then ``predicted`` and ``purity``: the share
        of the unit's labelled voters that had the label, empty for a unit without labelled voters.
    codebook, samples : the map, and the samples of `mapping`, if they were moved
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        `path` exists.
    StoreError
        A store is missing, foreign or damaged, or `mapping` and `voters` belong to different maps.
    ValueError
        No sample of `voters` has a label.

    Examples
    --------
    >>> prediction = tilepath.predict_labels(mapping, mapping, "labels.csv")
    >>> prediction
    Prediction(purity=1.0, labelled=200, score=1.0)
    """
    check_export(path, overwrite, array=False)
    mapping, voters = (open_mapping(each) for each in (mapping, voters))
    codebook = mapping.codebook_path if codebook is None else codebook
    codebook = open_codebook(codebook)
    for each in (mapping, voters):
        each.check_codebook(codebook)
    of_voters = voters.samples(samples if voters.path == mapping.path else None)
    vote, names = vote_of_mapping(voters, of_voters)
    classes = vote.winners[nearest_voters(vote, codebook.units(), codebook.metric)]
    found = mapping.samples(samples)
    predicted = pa.array(names).take(pa.array(classes))
    purity = pa.array(vote.purity, from_pandas=True)  # NaN becomes null
    write_units(mapping, path, samples=found, of_units={"predicted": predicted, "purity": purity}, overwrite=overwrite)
    labelled, right = _compared(mapping, found, [names[code] for code in classes])
    return Prediction(vote.total_purity(), labelled, right / labelled if labelled else float("nan"))


def _compared(mapping: Mapping, samples: Samples, of_units: list[str]) -> tuple[int, int]:
    """Return how many samples have a label, and how many samples have the label of their unit."""
    if not samples.labelled:
        return 0, 0
    codes = {name: code for code, name in enumerate(samples.label_names())}
    expected = np.array([codes.get(name, -2) for name in of_units])
    labelled = right = 0
    for rows in mapping.ranges():
        labels = samples.labels(*rows)
        labelled += int((labels >= 0).sum())
        right += int((labels == expected[mapping.units(*rows)[:, 0]]).sum())
    return labelled, right
