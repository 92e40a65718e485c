"""Compare what the commands of `scripts/release_trial.py` wrote: all engines have to give the same distances."""

import numpy as np

import tilepath

if __name__ == "__main__":
    by_choice, by_rows = (tilepath.open_distances(name) for name in ("rome-distances.zarr", "by-rows.zarr"))
    paths = tilepath.open_paths("paths.zarr")
    np.testing.assert_array_equal(by_choice[:], by_rows[:])
    np.testing.assert_array_equal(by_choice[[0, 16]], paths.distances())  # the sources 1 and 17
    codebook = tilepath.open_codebook("map.zarr")
    assert np.isfinite(codebook.units()).all()
