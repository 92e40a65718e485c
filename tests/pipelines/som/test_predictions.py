"""Labels that maps predict, against a plain vote."""

import re
from collections import Counter

import numpy as np
import pyarrow.csv
import pytest
from commands import invoke

from pipelines import map_samples, open_codebook, open_mapping, open_samples, predict_labels, train_som, write_samples
from pipelines.som.predictions import Prediction
from pipelines.stores.errors import StoreError
from tilepath.sklearn import SelfOrganizingMapClassifier


def blobs(seed, n):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[classes], classes


@pytest.fixture(scope="module")
def placed(client, tmp_path_factory):
    """A folder with a map, a mapping of labelled samples to it, and one of other samples with labels of other codes."""
    folder = tmp_path_factory.mktemp("predicted")
    values, classes = blobs(0, 400)
    labels = ["abc"[c] if i % 5 else None for i, c in enumerate(classes)]
    learnt = write_samples(folder / "l", values, labels=labels, dtype="float64")
    codebook = train_som(client, learnt, folder / "m", 12, 12, epochs=6)
    map_samples(client, codebook, learnt, folder / "v")
    values, classes = blobs(1, 5000)
    others = write_samples(folder / "s", values, labels=["cbax"[2 - c] for c in classes], dtype="float64")
    map_samples(client, codebook, others, folder / "p")
    return folder


def test_a_sample_has_the_label_of_most_samples_of_its_unit(placed, tmp_path):
    found = predict_labels(placed / "p", placed / "v", tmp_path / "out.csv")
    table = pyarrow.csv.read_csv(tmp_path / "out.csv").to_pydict()
    classes = blobs(0, 400)[1]
    votes: dict[int, Counter] = {}
    for i, unit in enumerate(open_mapping(placed / "v").units()[:, 0].tolist()):
        if i % 5:
            votes.setdefault(unit, Counter())["abc"[classes[i]]] += 1
    units = open_codebook(placed / "m").units()
    assert 0 < len(votes) < len(units)  # some have no vote
    for unit, predicted, purity in zip(table["unit"], table["predicted"], table["purity"], strict=True):
        if unit in votes:
            assert votes[unit][predicted] == max(votes[unit].values())
            assert purity == pytest.approx(votes[unit][predicted] / votes[unit].total())
        else:
            nearest = min(votes, key=lambda other: ((units[unit] - units[other]) ** 2).sum())
            assert votes[nearest][predicted] == max(votes[nearest].values())
            assert purity is None
    right = sum(label == predicted for label, predicted in zip(table["label"], table["predicted"], strict=True))
    assert (found.labelled, found.score) == (5000, right / 5000)
    assert found.score > 0.8


def test_the_classifier_predicts_the_same(placed, tmp_path):
    codebook = open_codebook(placed / "m")
    learner = SelfOrganizingMapClassifier(12, 12, epochs=6)
    learnt, known = blobs(0, 400)
    there = np.arange(400) % 5 > 0
    learner.fit(learnt, known)
    np.testing.assert_array_equal(learner.codebook_, codebook.units())
    names = open_samples(placed / "l").label_names()  # in their order of ties
    learner._vote(learner.labels_[there], np.array([names.index("abc"[c]) for c in known[there]]))
    predict_labels(placed / "p", placed / "v", tmp_path / "out.csv")
    predicted = pyarrow.csv.read_csv(tmp_path / "out.csv").to_pydict()["predicted"]
    assert [names[c] for c in learner.predict(blobs(1, 5000)[0])] == predicted


def test_only_all_are_100_percent():
    assert Prediction(1.0, 94_996, 1.0).describe() == (
        "100.0 % of 94,996 labelled samples predicted correctly; mean purity 1.00"
    )
    assert Prediction(0.9999, 94_996, 94_995 / 94_996).describe().startswith("99.9 % of 94,996 labelled samples")
    assert Prediction(0.9999, 1, 0.29).describe() == "29.0 % of 1 labelled sample predicted correctly; mean purity 0.99"
    assert Prediction(0.5, 0, float("nan")).describe() == "mean purity 0.50"


def test_by_command_and_what_cannot_be(client, placed, tmp_path):
    def run(*arguments, code=0):
        done = invoke("som", "predict", *arguments)
        assert done.exit_code == code, (done.output, done.exception)
        return f"{done.output}{done.exception or ''}"

    said = run(placed / "p", tmp_path / "o.parquet", "--voters", placed / "v")
    assert re.search(
        r"o.parquet: [89]\d\.\d % of 5,000 labelled samples predicted correctly; mean purity 0\.\d\d\n", said
    )
    assert "exists already" in run(placed / "p", tmp_path / "o.parquet", code=1)
    assert "of 320 labelled samples" in run(placed / "v", tmp_path / "self.csv")
    bare = write_samples(tmp_path / "bare", blobs(3, 50)[0], dtype="float64")
    mapped = map_samples(client, placed / "m", bare, tmp_path / "b")
    assert run(placed / "p", tmp_path / "x.csv", "--voters", tmp_path / "b", code=1).count("labels") > 0
    assert "score" not in (said := run(tmp_path / "b", tmp_path / "x.csv", "--voters", placed / "v"))
    assert "labelled samples" not in said
    other = train_som(client, placed / "l", tmp_path / "m", 12, 12, epochs=1)
    map_samples(client, other, bare, tmp_path / "c")
    with pytest.raises(StoreError, match="maps to another map than"):
        predict_labels(tmp_path / "c", placed / "v", tmp_path / "y.csv")
    assert mapped.n == 50
