"""The pictures of docs/maps.md: iris flowers on a hexagonal map. `python docs/gallery/iris_map.py` draws them anew."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_iris

from tilepath import cluster_map, map_samples, picture_map, start, train_som, write_samples


def main(folder: Path) -> None:
    """Draw every picture into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    iris = load_iris()
    labels = [str(iris.target_names[code]) for code in iris.target]
    with TemporaryDirectory() as place, start(device="cpu") as client:
        samples = write_samples(f"{place}/iris.zarr", iris.data, labels=labels, scaling="zscore")
        codebook = train_som(client, samples, f"{place}/map.zarr", rows=10, columns=14, hexagonal=True)
        mapping = map_samples(client, codebook, samples, f"{place}/units.zarr")
        clusters = cluster_map(codebook, "agglomerative", 3, adjacent=True)
        titles = {"umatrix": "Clusters of iris flowers", "pies": "Species in each unit", "tree": "Tree of the units"}
        for kind, title in titles.items():
            shown = {"mapping": mapping, "samples": samples, "clusters": clusters, "title": title, "size": (4, 4)}
            picture_map(codebook, folder / f"{kind}.png", kind, **shown, overwrite=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "maps")
