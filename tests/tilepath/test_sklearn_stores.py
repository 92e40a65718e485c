"""Estimators and the stores of the command line are one world; AnnData objects go in, and come back annotated."""

from contextlib import nullcontext

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from commands import invoke
from sklearn.datasets import load_iris

from pipelines import export_map, import_samples, map_samples, open_codebook, picture_map, train_som
from pipelines.stores.errors import StoreError
from tilepath.cli.describe import store_info
from tilepath.sklearn import SelfOrganizingMap, SelfOrganizingMapClassifier

X = load_iris().data
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X, columns=NAMES)


def run(text, code=0):
    done = invoke(*text.split())
    assert done.exit_code == code, (done.output, done.exception)
    return f"{done.output}{done.exception or ''}"


def test_commands_read_what_an_estimator_has_saved(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    som = SelfOrganizingMap(4, 5, hexagonal=True, epochs=3).fit(FRAME)
    som.save("map.zarr")
    assert "4 x 5 hexagonal map of 4 columns, 3 epochs" in run("info map.zarr")
    assert "every value is finite" in run("verify map.zarr")
    FRAME.to_csv("iris.csv", index=False)
    assert open_codebook("map.zarr").samples_path == ""
    # The units of the command line are those of the estimator.
    run("som import iris.csv iris.zarr --like map.zarr")
    mapped = map_samples(client, "map.zarr", "iris.zarr", "units.zarr")
    assert mapped.units()[:, 0].tolist() == som.labels_.tolist()
    assert mapped.hits().tolist() == som.hits_.ravel().tolist()
    for kind in ("hits", "curve"):
        run(f"som plot map.zarr {kind}.png --kind {kind} --dpi 40")
    run("som cluster map.zarr parts.csv --clusters 3 --mapping units.zarr")
    assert pd.read_csv("parts.csv").unit.tolist() == som.labels_.tolist()
    assert "trained with samples in memory; import them, and give their path" in run(
        "som plot map.zarr p.png --kind pmatrix", 1
    )
    run("som plot map.zarr p.png --kind pmatrix --samples iris.zarr --dpi 40")


@pytest.mark.parametrize("scaling", ["none", "zscore", "arcsinh"])
def test_an_estimator_reads_what_a_command_has_trained(client, tmp_path, scaling):
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).to_csv(tmp_path / "x.csv", index=False)
    samples = import_samples(tmp_path / "x.csv", tmp_path / "s.zarr", scaling=scaling, dtype="float64")
    trained = train_som(client, samples, tmp_path / "m.zarr", 4, 3, epochs=4, initial="random", seed=7, sigma=1.5)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    som = SelfOrganizingMap.load(tmp_path / "m.zarr")
    placed = map_samples(client, trained, samples, tmp_path / "p.zarr").units()[:, 0]
    assert som.predict(table).tolist() == placed.tolist()
    assert som.hits_.ravel().tolist() == trained.hits().tolist()
    assert (som.rows, som.columns, som.epochs, som.sigma, som.initial, som.random_state) == (4, 3, 4, 1.5, "random", 7)
    assert som.quantization_errors_ == [*trained.quantization_errors]
    # Values come back in units of the source, and training goes on where the command ended.
    export_map(trained, tmp_path / "values.npy")
    assert np.allclose(som.inverse_transform(np.arange(12)), np.load(tmp_path / "values.npy").reshape(12, 2))
    again = SelfOrganizingMap.load(trained).partial_fit(table)
    assert again.n_iter_ == 5
    assert np.isclose(again.quantization_errors_[-1], trained.quantization_errors[-1])
    # A round trip keeps everything.
    som.save(tmp_path / "copy.zarr")
    copied = open_codebook(tmp_path / "copy.zarr")
    assert (copied.scaling, copied.columns, copied.sigmas) == (trained.scaling, trained.columns, trained.sigmas)
    assert (copied.options, copied.quantization_errors) == (trained.options, trained.quantization_errors)
    assert (copied.units() == trained.units()).all()
    # A new fit is on the scale of its samples.
    with pytest.warns(UserWarning, match="trained on scaled samples.*; scale X") if som.scaling_ else nullcontext():
        som.fit(table)
    assert som.scaling_ is None
    assert (som.codebook_ == SelfOrganizingMap(**som.get_params()).fit(table).codebook_).all()


def test_values_that_the_scaling_of_the_map_cannot_take_are_named(client, tmp_path):
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).to_csv(tmp_path / "x.csv", index=False)
    samples = import_samples(tmp_path / "x.csv", tmp_path / "s.zarr", transforms={"b": "log"})
    som = SelfOrganizingMap.load(train_som(client, samples, tmp_path / "m.zarr", 2, 2, epochs=1))
    with pytest.raises(ValueError, match="X: a value of column 'b' is -inf once it is scaled"):
        som.predict(pd.DataFrame({"a": [1.0], "b": [0.0]}))


def test_a_map_of_partial_fit_is_saved_with_samples_to_count(tmp_path):
    som = SelfOrganizingMap(3, 3, epochs=3).partial_fit(X[:70]).partial_fit(X[70:])
    with pytest.raises(ValueError, match="partial_fit does not count hits; pass samples as X"):
        som.save(tmp_path / "m.zarr")
    som.save(tmp_path / "m.zarr", X)
    saved = open_codebook(tmp_path / "m.zarr")
    assert saved.hits().tolist() == np.bincount(som.predict(X), minlength=9).tolist()
    assert len(saved.quantization_errors) == 3
    assert not hasattr(som, "hits_")
    loaded = SelfOrganizingMap.load(tmp_path / "m.zarr")
    assert not hasattr(loaded, "feature_names_in_")
    # A loaded map shows its hits, and the labels of samples that are passed.
    assert loaded.plot("hits").collections[0].get_array().sum() == len(X)
    pies = loaded.plot("pies", X=X[:90], y=load_iris().target[:90])
    assert [text.get_text() for text in pies.get_legend().get_texts()] == ["0", "1", "no sample"]
    assert loaded.plot("hits", X=X[:90]).collections[0].get_array().sum() == 90
    with pytest.raises(ValueError, match="pass the samples as X"):
        loaded.plot("pies", y=load_iris().target)
    with pytest.raises(ValueError, match="of each of the 90 samples of fit or X"):
        loaded.plot("pies", X=X[:90], y=load_iris().target)
    plt.close("all")
    assert (loaded.predict(X) == som.predict(X)).all()
    with pytest.raises(StoreError, match="exists already"):
        som.save(tmp_path / "m.zarr", X)
    som.fit(X).save(tmp_path / "m.zarr", overwrite=True)
    assert open_codebook(tmp_path / "m.zarr").epochs == 3


@pytest.mark.parametrize("names", [np.arange(3), np.array([2.0, 3, 5], "f4"), load_iris().target_names])
def test_a_classifier_is_saved_with_its_classes(tmp_path, names):
    classifier = SelfOrganizingMapClassifier(3, 4, lvq_epochs=2, random_state=1).fit(X, names[load_iris().target])
    classifier.save(tmp_path / "m.zarr")
    assert SelfOrganizingMap.load(tmp_path / "m.zarr").hits_.sum() == len(X)
    assert "classes and votes" in store_info(tmp_path / "m.zarr", verify=True)[-1]
    loaded = SelfOrganizingMapClassifier.load(tmp_path / "m.zarr")
    assert (loaded.predict(X) == classifier.predict(X)).all()
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.purity_, classifier.purity_)
    assert loaded.get_params() == classifier.get_params() | {"sigma": 2.0, "random_state": None}


def test_a_classifier_is_not_loaded_without_classes(tmp_path):
    SelfOrganizingMap(2, 2).fit(X).save(tmp_path / "m.zarr")
    with pytest.raises(TypeError, match="m.zarr holds no classes, .*; load a SelfOrganizingMap"):
        SelfOrganizingMapClassifier.load(tmp_path / "m.zarr")


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # of anndata 0.13 beside pandas 3
def test_annotated_data_goes_in_and_comes_back_annotated():
    adata = anndata.AnnData(X.astype("f4"), var=pd.DataFrame(index=NAMES))
    som = SelfOrganizingMap(4, 5, hexagonal=True).fit(adata)
    assert som.feature_names_in_.tolist() == NAMES
    assert (som.codebook_ == SelfOrganizingMap(4, 5, hexagonal=True).fit(X.astype("f4")).codebook_).all()
    som.annotate(adata, "som")
    assert adata.obs.columns.tolist() == ["som_unit"]
    som.cluster(3)
    som.annotate(adata)
    assert (adata.obs["som_unit"] == som.labels_).all()
    assert adata.obs["som_cluster"].cat.categories.tolist() == ["0", "1", "2"]
    assert (adata.obs["som_cluster"].astype(int) == som.unit_clusters_[som.labels_]).all()
    assert np.allclose(adata.obsm["X_som"], som.grid_.positions()[som.labels_])
    SelfOrganizingMap(3, 3).fit(adata).annotate(adata)
    assert adata.obs.columns.tolist() == ["som_unit"]  # clusters of the other map are gone
    with pytest.raises(TypeError, match="annotate takes an AnnData object, not ndarray"):
        som.annotate(X)
    kinds = load_iris().target_names[load_iris().target]
    classifier = SelfOrganizingMapClassifier(3, 3, random_state=0).fit(adata, kinds)
    classifier.annotate(adata, "lvq")
    assert (adata.obs["lvq_class"] == classifier.predict(adata)).all()


def test_the_scale_of_a_loaded_map_is_said_on_its_colour_bar(client, tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    samples = import_samples(tmp_path / "x.csv", tmp_path / "s.zarr", scaling="arcsinh")
    trained = train_som(client, samples, tmp_path / "m.zarr", 4, 3, epochs=1)
    som = SelfOrganizingMap.load(trained)
    for figure, in_axes in (
        (picture_map(trained, None, "planes", scaled=True), False),
        (som.plot("plane", "petal width", scaled=True).figure, True),
    ):
        labels = {axes.get_ylabel() for axes in figure.get_axes()} | {
            child.get_ylabel() for axes in figure.get_axes() for child in axes.child_axes
        }
        assert "arcsinh(x / 5)" in labels, in_axes
    plane = picture_map(trained, None, "planes", columns=["petal width"], scaled=True).get_axes()[0]
    assert np.allclose(plane.collections[0].get_array(), trained.units()[:, 3])
    raw = som.plot("plane", "petal width")
    assert np.allclose(raw.collections[0].get_array(), trained.scaling.undo(trained.units())[:, 3], rtol=1e-5)
