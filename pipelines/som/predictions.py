"""Labels that a map predicts: those of the majority of the labelled samples of a sample's unit."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.som.classes import vote_of_mapping, voted_classes
from pipelines.som.tables import check_export, write_units
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.mapping import Mapping, open_mapping
from pipelines.stores.samples import Samples


class Prediction(NamedTuple):
    """How well labels are predicted."""

    purity: float  # the share of the samples that voted whose label is that of their unit
    labelled: int  # samples that have a label and one predicted
    score: float  # the share of these for which they are the same; NaN where there are none

    def describe(self) -> str:
        """One line for people."""
        score = f"; {self.score:.4g} of {self.labelled:,} labelled samples as predicted" if self.labelled else ""
        return f"purity of the votes {self.purity:.4g}{score}"


def predict_labels(
    mapping: Mapping | str | os.PathLike[str],
    voters: Mapping | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    codebook: Codebook | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Prediction:
    """Write the units of the samples of a mapping, with the labels predicted for them, to the table `path`.

    Parameters
    ----------
    mapping : Mapping or path of a mapping store
    voters : Mapping or path of another, to the same map, of samples with labels
        Every unit has the label of most of its samples, of equally many the first, and a unit without any that of the
        nearest unit with some. May be `mapping` itself.
    path : .csv, .tsv (or .csv.gz, .tsv.gz) or .parquet
        Its columns are those of `pipelines.export_map` for units, then ``predicted`` and ``purity``, the share of the
        unit's votes that the label had; no number where the unit had none.
    codebook, samples : the map, and the samples of `mapping`, if they were moved
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        `path` exists.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, or both are not to one map.
    ValueError
        No sample of `voters` has a label.
    """
    check_export(path, overwrite, array=False)
    mapping, voters = (each if isinstance(each, Mapping) else open_mapping(each) for each in (mapping, voters))
    codebook = mapping.codebook_path if codebook is None else codebook
    codebook = codebook if isinstance(codebook, Codebook) else open_codebook(codebook)
    for each in (mapping, voters):
        each.check_codebook(codebook)
    of_voters = voters.samples(samples if voters.path == mapping.path else None)
    vote, names = vote_of_mapping(voters, of_voters)
    classes = voted_classes(vote, codebook.units(), codebook.metric)
    found = mapping.samples(samples)
    predicted = pa.array(names).take(pa.array(classes))
    purity = pa.array(vote.purity, from_pandas=True)  # no number is null
    write_units(mapping, path, samples=found, of_units={"predicted": predicted, "purity": purity}, overwrite=overwrite)
    labelled, right = _compared(mapping, found, [names[code] for code in classes])
    return Prediction(vote.total_purity(), labelled, right / labelled if labelled else float("nan"))


def _compared(mapping: Mapping, samples: Samples, of_units: list[str]) -> tuple[int, int]:
    """How many samples have a label, and how many of them that of their unit."""
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
