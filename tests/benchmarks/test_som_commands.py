"""The suite `som-commands` writes files that tilepath imports as the cells that they were made of."""

import numpy as np

from benchmarks.suites import som_commands
from pipelines import PointCloud, import_samples


def test_the_files_hold_the_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(som_commands, "IN_FILE", 40)
    monkeypatch.setattr(som_commands, "DRAWN", 20)
    cells = PointCloud(kind="blobs", n=70, d=4, clusters=3, seed=1)
    files = som_commands.write_files(cells, tmp_path)
    assert len(files) == 2
    samples = import_samples(files, tmp_path / "samples.zarr", transforms={"*": "arcsinh:5"})
    assert samples.columns == ("marker 1", "marker 2", "marker 3", "marker 4")
    np.testing.assert_allclose(samples.values(), cells.points()[0], rtol=1e-5, atol=1e-5)
