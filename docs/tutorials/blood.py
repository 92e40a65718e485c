"""Write two made-up samples of blood, for the tutorials: control.fcs and patient.fcs, as a flow cytometer would.

    python docs/tutorials/blood.py [FOLDER]    into the current folder by default

Each file has 2,500 cells of five populations, with the light of six markers. A tenth of the light of CD3 spills over
to the detector of CD4; the file has the matrix that undoes this. The patient has more NK cells.
"""

import sys
from pathlib import Path

import flowio
import numpy as np

MARKERS = ["CD3", "CD4", "CD8", "CD14", "CD19", "CD56"]
POPULATIONS = {  # the markers that its cells carry, and its shares of the two samples
    "T helper": (["CD3", "CD4"], 0.42, 0.32),
    "T killer": (["CD3", "CD8"], 0.25, 0.22),
    "B": (["CD19"], 0.13, 0.12),
    "NK": (["CD56"], 0.05, 0.19),
    "monocytes": (["CD14"], 0.15, 0.15),
}


def main(folder: Path, cells: int = 2500) -> None:
    rng = np.random.default_rng(7)
    spillover = np.eye(len(MARKERS))
    spillover[0, 1] = 0.1
    text = ",".join([str(len(MARKERS)), *MARKERS, *map(str, spillover.ravel())])
    for column, name in ((1, "control"), (2, "patient")):
        shares = [given[column] for given in POPULATIONS.values()]
        kinds = rng.choice(len(POPULATIONS), cells, p=shares)
        carried = np.array([[marker in markers for marker in MARKERS] for markers, *_ in POPULATIONS.values()])
        light = rng.lognormal(np.where(carried[kinds], 8.5, 4), 0.35) + rng.normal(0, 40, (cells, len(MARKERS)))
        scatter = rng.normal(60_000, 8_000, (cells, 1))
        events = np.hstack([scatter, light @ spillover])
        channels = ["FSC-A", *MARKERS]
        with open(folder / f"{name}.fcs", "wb") as file:
            flowio.create_fcs(file, events.ravel().tolist(), channels, channels, {"spillover": text})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
