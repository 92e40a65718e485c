"""Clusters of maps against known classes: a table of adjusted Rand indices, of tilepath's and of other methods.

    python docs/gallery/maps.py [--cells FILE.fcs LABELS.csv] [--flowsom]

`--cells` adds cells of a flow cytometer: the file ff.fcs and the gates gating_result.csv among the tests of the source
distribution of `flowsom` on PyPI, by the markers that its tests use. `--flowsom` adds FlowSOM (``pip install
flowsom``), the mean over five seeds.
"""

import csv
import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from pipelines import PointCloud
from pipelines.som.clusters import cluster_units
from tilepath.sklearn import SelfOrganizingMap

MARKERS = [8, 11, 13, 14, 15, 16, 17]  # CD8, TCRyd, TCRb, NK1/1, CD4, CD19, CD3
COLUMNS = {
    "ward": {"method": "agglomerative"},
    "ward, adjacent": {"method": "agglomerative", "adjacent": True},
    "average": {"method": "agglomerative", "linkage": "average"},
    "kmeans": {"method": "kmeans"},
    "watershed": {"method": "watershed"},
    "immersion": {"method": "immersion"},
    "immersion, number found": {"method": "immersion", "clusters": None},
}


def chainlink():
    """Two linked rings."""
    values, labels = PointCloud(kind="chainlink", n=1000, seed=0).points()
    return np.asarray(values), np.asarray(labels)


def cells(path, labels):
    """Cells of a mouse's spleen and their gates; cells outside of all gates belong to no class, -1."""
    import flowio

    values = flowio.FlowData(path, ignore_offset_error=True).as_array()[:, MARKERS]
    with open(labels, newline="") as file:
        names = np.array([row[0] for row in csv.reader(file)])
    return values, np.where(names == "Unlabeled", -1, np.unique(names, return_inverse=True)[1])


def indices(samples, classes, rows, columns, count, flowsom):
    """The adjusted Rand index of each method, NaN where it cannot find so many clusters."""
    known = classes >= 0
    som = SelfOrganizingMap(rows, columns, device="cpu").fit(samples)

    def index(found):
        return adjusted_rand_score(classes[known], found[known])

    for options in COLUMNS.values():
        try:
            found = cluster_units(som.codebook_, som.grid_, **{"clusters": count, "samples": samples, **options})
            yield index(found[som.labels_])
        except ValueError:
            yield float("nan")
    by_hand = KMeans(count, n_init=10, random_state=0)
    yield index(by_hand.fit_predict(som.codebook_)[som.labels_])
    yield index(by_hand.fit_predict(samples))
    if flowsom:
        from flowsom.models import FlowSOMEstimator

        others = (FlowSOMEstimator(xdim=rows, ydim=columns, n_clusters=count, seed=seed) for seed in range(5))
        yield np.mean([index(other.fit_predict(samples.astype(np.float64))) for other in others])


def main(arguments):
    """Print the table."""
    iris, digits, flowsom = load_iris(), load_digits(), "--flowsom" in arguments
    sets = [
        ("iris", StandardScaler().fit_transform(iris.data), iris.target, 10, 10, 3),
        ("digits", digits.data / 16, digits.target, 20, 20, 10),
        ("chainlink", *chainlink(), 20, 20, 2),
    ]
    if "--cells" in arguments:
        place = arguments.index("--cells")
        measured = cells(*arguments[place + 1 : place + 3])
        sets += [("cells", *measured, rows, columns, 7) for rows, columns in ((10, 10), (40, 50))]
    heads = [*COLUMNS, "SOM + k-means by hand", "k-means, no map", *(["FlowSOM"] if flowsom else [])]
    table = [["method", *heads]]
    for name, samples, classes, rows, columns, count in sets:
        found = indices(samples, classes, rows, columns, count, flowsom)
        shown = ("-" if np.isnan(value) else f"{value:.3f}" for value in found)
        table.append([f"{name}, {rows} x {columns}, {count} clusters", *shown])
    head, *lines = zip(*table, strict=True)
    for line in [head, ["---", *["---:"] * len(sets)], *lines]:
        print("|", " | ".join(line), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
