"""Clusters of maps against known classes: adjusted Rand indices of the methods, beside k-means by hand, as a table."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from pipelines import PointCloud
from pipelines.som.clusters import cluster_units
from tilepath.sklearn import SelfOrganizingMap


def chainlink() -> tuple[np.ndarray, np.ndarray]:
    """Two linked rings."""
    cloud = PointCloud(kind="chainlink", n=1000, seed=0)
    values, labels = cloud.points()
    return np.asarray(values), np.asarray(labels)


iris, digits = load_iris(), load_digits()
SETS = {
    "iris": (StandardScaler().fit_transform(iris.data), iris.target, (10, 10)),
    "digits": (digits.data / 16, digits.target, (20, 20)),
    "chainlink": (*chainlink(), (20, 20)),
}
COLUMNS = ("agglomerative", "agglomerative, adjacent", "kmeans", "watershed", "immersion")

print("| samples, map |", " | ".join([*COLUMNS, "SOM + k-means by hand", "k-means, no map"]), "|")
print("|---|" + "---|" * (len(COLUMNS) + 2))
for name, (samples, classes, (rows, columns)) in SETS.items():
    count = len(np.unique(classes))
    som = SelfOrganizingMap(rows, columns, device="cpu").fit(samples)
    cells = []
    for method in COLUMNS:
        found = cluster_units(
            som.codebook_,
            som.grid_,
            method.split(",")[0],
            count,
            adjacent="adjacent" in method,
            hits=som.hits_.ravel(),
            samples=samples,
        )
        cells.append(adjusted_rand_score(classes, found[som.labels_]))
    by_hand = KMeans(count, n_init=10, random_state=0).fit_predict(som.codebook_)
    cells.append(adjusted_rand_score(classes, by_hand[som.labels_]))
    cells.append(adjusted_rand_score(classes, KMeans(count, n_init=10, random_state=0).fit_predict(samples)))
    print(f"| {name}, {rows} x {columns} |", " | ".join(f"{cell:.3f}" for cell in cells), "|")
