"""Tables of every vertex, and of what is near, against the matrix of all distances."""

import warnings

import numpy as np
import pandas as pd
import pytest
from commands import invoke, run_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines import od, positions, write_graph
from pipelines.od_tables import near
from pipelines.od_tables.blocks import DistancesTo

pytestmark = pytest.mark.filterwarnings("ignore:.*hardly any destination")

N = 60
FIXED = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VERTICES = st.lists(st.integers(0, N - 1), min_size=1, max_size=12)


@FIXED
@given(VERTICES, st.integers(1, 5), st.sampled_from([None, 0, 25, 60.5]))
def test_the_nearest_of_every_vertex(source, matrix, places, k, within):
    found = od(source, None, positions(places), nearest=k, within=within)
    block = matrix[:, places]
    expected = [
        (f"v{i}", f"v{places[j]}", block[i, j])
        for i in range(N)
        for j in np.argsort(block[i], kind="stable")[:k]
        if block[i, j] <= (1e9 if within is None else within)
    ]
    assert found["origin"].unique().tolist() == [f"v{v}" for v in range(N)]
    alone = found[found["destination"].isna()]
    assert alone["travel_time"].isna().all()
    assert set(alone["origin"]) == {f"v{v}" for v in range(N)} - {origin for origin, *_ in expected}
    assert list(found.dropna().itertuples(index=False, name=None)) == expected


def test_an_origin_that_reaches_nothing_has_a_row(graph, matrix, tmp_path):
    away = [v for v in range(50, N) if np.isinf(matrix[3, v])][:2]  # vertices to which no path leads from vertex 3
    schools = pd.DataFrame({"id": [7, 8], "vertex": [f"v{v}" for v in away]})
    found = od(graph, positions([3, away[1]]), schools, nearest=1, paths=True)
    assert found["origin"].tolist() == ["v3", f"v{away[1]}"]
    assert found["destination"].dtype == "Int64"
    assert found["destination"].isna().tolist() == [True, False]
    assert found["destination"][1] == 8
    assert found["path"][0] is None
    assert found["path"][1].tolist() == [f"v{away[1]}"]
    assert found.drop(columns=["origin", "path"]).iloc[0].isna().all()
    homes, school = tmp_path / "homes.csv", tmp_path / "schools.csv"
    homes.write_text("vertex\nv3\nv55\n")
    schools.to_csv(school, index=False)
    command = ["od", graph.path, str(tmp_path / "t.csv"), "--origins", str(homes), "--destinations", str(school)]
    assert invoke(*command, "--nearest", "1").exit_code == 0
    assert pd.read_csv(tmp_path / "t.csv")["origin"].tolist() == ["v3", "v55"]


@FIXED
@given(VERTICES, st.sampled_from([0, 25, 60.5]), st.booleans(), st.booleans())
def test_what_is_within_a_limit(source, matrix, monkeypatch, places, within, everywhere, searched):
    monkeypatch.setattr(near, "FEW", 0 if searched else 1e9)
    monkeypatch.setattr(near, "REACHED_WORK", 0)
    origins = None if everywhere else positions([4, 4, 55, 7])
    found = od(source, origins, positions(places), within=within)
    rows = range(N) if everywhere else [4, 4, 55, 7]
    expected = [(f"v{i}", f"v{j}", matrix[i, j]) for i in rows for j in places if matrix[i, j] <= within]
    assert list(found.itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize("searched", [True, False])
@pytest.mark.parametrize("decay", [None, "linear", "exponential"])
@pytest.mark.parametrize("how", ["count", "sum:jobs", "mean:jobs", "min", "decay:20:jobs"])
def test_aggregates_of_every_vertex(source, matrix, monkeypatch, how, decay, searched):
    monkeypatch.setattr(near, "FEW", 0 if searched else 1e9)
    monkeypatch.setattr(near, "REACHED_WORK", 0)
    monkeypatch.setattr(near, "SEARCHES", 7)  # several groups of searches
    monkeypatch.setattr(near, "END_BYTES", 0)
    rng = np.random.default_rng(6)
    places, within = rng.integers(0, N, 25), 45
    jobs = pd.DataFrame({"vertex": [f"v{v}" for v in places], "jobs": rng.uniform(0, 9, 25)})
    if decay and how.startswith(("min", "decay")):
        with pytest.raises(ValueError, match="goes with count, sum and mean only"):
            od(source, None, jobs, reduce=how, within=within, decay=decay)
        return
    found = od(source, None, jobs, reduce=how, within=within, decay=decay)
    d = matrix[:, places]
    weights = {None: np.ones_like(d), "linear": 1 - d / within, "exponential": np.exp(-d / within)}[decay]
    weights = np.where(d <= within, weights, 0)
    with np.errstate(invalid="ignore"):
        expected = {
            "count": weights.sum(1),
            "sum:jobs": weights @ jobs["jobs"],
            "mean:jobs": weights @ jobs["jobs"] / weights.sum(1),
            "min": np.where(d <= within, d, np.inf).min(1),
            "decay:20:jobs": (d <= within) * np.exp(-d / 20) @ jobs["jobs"],
        }[how]
    assert found["origin"].tolist() == [f"v{v}" for v in range(N)]
    np.testing.assert_allclose(found.iloc[:, 1], np.where(np.isfinite(expected), expected, np.nan))


def test_searches_end_at_the_limit_and_cost_no_table(source, monkeypatch):
    monkeypatch.setattr(near, "FEW", 0)
    monkeypatch.setattr(near, "REACHED_WORK", 0)
    monkeypatch.setattr(DistancesTo, "__init__", lambda *_: 1 / 0)
    for options in {"within": 5}, {"nearest": 2}, {"within": 9, "reduce": "count"}:
        assert len(od(source, None, positions([3, 9]), **options))


def test_sums_of_every_vertex_take_a_search_from_each_destination(source, matrix, monkeypatch):
    """From each of the 60 origins, ten times as much work would be more than the tables take."""
    searched, search = [], near.distances_within
    monkeypatch.setattr(near, "distances_within", lambda *a, **k: searched.append(a[3].tolist()) or search(*a, **k))
    monkeypatch.setattr(near, "FEW", 0)
    monkeypatch.setattr(DistancesTo, "__init__", lambda *_: 1 / 0)
    found = od(source, None, positions([3, 9, 3]), within=9, reduce="count")
    assert found["count"].tolist() == (matrix[:, [3, 9, 3]] <= 9).sum(1).tolist()
    assert [3, 9] in searched
    assert max(map(len, searched)) < N


def test_integers_of_every_width_are_searched(tmp_path):
    for dtype in "int64", "int16", "uint8", "int32":
        weights = np.array([3, 5, 4], dtype)
        graph = write_graph(tmp_path / dtype, np.array([0, 1, 2, 3]), np.array([1, 2, 0]), weights)
        found = od(graph, None, positions([0]), nearest=1)
        assert found["distance"].tolist() == [0, 9, 4]
    far = write_graph(tmp_path / "far", np.array([0, 1, 1]), np.array([1]), np.array([2**40]))
    with pytest.raises(ValueError, match="a weight does not fit int32; import the graph with weights of float64"):
        od(far, None, positions([0]), nearest=1)


def test_no_search_is_tried_for_few_destinations(store, monkeypatch):
    monkeypatch.setattr(near, "distances_within", lambda *_, **__: 1 / 0)
    assert len(od(store, None, positions([3, 9]), within=9, reduce="count")) == N


def test_options_of_decay_are_checked(source):
    for options, message in (
        ({"decay": "linear"}, "needs reduce"),
        ({"decay": "steep", "reduce": "count", "within": 3}, "choose linear or exponential"),
        ({"decay": "linear", "reduce": "count"}, "needs within"),
        ({"decay": "linear", "reduce": "count", "within": 0}, "needs within"),
    ):
        with pytest.raises(ValueError, match=message):
            od(source, None, positions([3]), **options)


def test_the_command_without_origins_answers_for_every_vertex(source, matrix, tmp_path):
    (tmp_path / "d.csv").write_text("vertex,jobs\nv3,2.5\nv9,4\n")
    arguments = ["--destinations", str(tmp_path / "d.csv"), "--reduce", "mean:jobs", "--within", "50"]
    run_command("od", source.path, tmp_path / "o.csv", *arguments, "--decay", "linear")
    found = pd.read_csv(tmp_path / "o.csv")["mean_jobs"]
    weights = np.maximum(0, 1 - matrix[:, [3, 9]] / 50)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, weights @ [2.5, 4] / weights.sum(1))


@pytest.mark.parametrize("options", [{}, {"reduce": "count"}, {"unit": "s"}], ids=str)
def test_a_short_limit_without_a_unit_is_questioned(source, options):
    with pytest.warns(UserWarning, match="is 0.5 in s, .* hardly any destination .* '0.5min' for minutes, or '0.5s'"):
        od(source, positions(range(50)), within=0.5, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for within in "0.5s", 20, 60, 0:  # seconds; a table with nearly nothing, with much, from a minute on, by intent
            od(source, positions(range(50)), within=within, **options)
        od(source, positions(range(50)), within=0.01, **options | {"unit": "min"})


def test_the_command_questions_a_short_limit(graph, tmp_path):
    (tmp_path / "o.csv").write_text("vertex\nv1\nv2\n")
    command = ["od", graph.path, str(tmp_path / "t.csv"), "--origins", str(tmp_path / "o.csv"), "--within", "0.5"]
    said = invoke(*command).stderr
    assert "--within is 0.5 in s, the unit of the table, in which hardly any" in said


@pytest.mark.parametrize("everywhere", [True, False])
def test_several_reductions_and_limits_give_a_column_each(source, tmp_path, everywhere):
    jobs = pd.DataFrame({"vertex": [f"v{v}" for v in range(40)], "jobs": np.arange(40.0), "beds": 2.0})
    origins = None if everywhere else positions([4, 4, 55, 7])
    options = {"reduce": ["sum:jobs", "count", "mean:beds", "min"], "decay": None}
    found = od(source, origins, jobs, within="30,70s", unit="s", **options)
    singles = {
        f"{how.replace(':', '_')}_{limit}": od(source, origins, jobs, within=limit, reduce=how).iloc[:, 1]
        for how in options["reduce"][:3]
        for limit in (30, 70)
    }
    singles["min"] = od(source, origins, jobs, within=70, reduce="min")["min"]  # within 30 it is equal or missing
    pd.testing.assert_frame_equal(found[["origin"]].assign(**singles), found)
    assert not found["sum_jobs_30"].equals(found["sum_jobs_70"])
    minutes = od(
        source, origins, jobs, within=["0.5min", "1.5min"], unit="min", decay="linear", reduce="count,sum:jobs"
    )
    assert list(minutes)[1:] == ["count_0.5", "count_1.5", "sum_jobs_0.5", "sum_jobs_1.5"]
    single = od(source, origins, jobs, within=90, decay="linear", reduce="sum:jobs")["sum_jobs"]
    np.testing.assert_allclose(minutes["sum_jobs_1.5"], single)


def test_the_command_reduces_to_several_columns(source, tmp_path):
    pd.DataFrame({"vertex": ["v1", "v2"], "a,b": [3, 4]}).to_csv(tmp_path / "o.csv")
    command = ["od", source.path, str(tmp_path / "t.csv"), "--destinations", str(tmp_path / "o.csv")]
    run_command(*command, "--reduce", "count,sum:a,b", "--within", "30,1000s")
    assert list(pd.read_csv(tmp_path / "t.csv"))[1:] == ["count_30", "count_1000", "sum_a,b_30", "sum_a,b_1000"]
    for options, says in (
        ({"reduce": ["decay:5", "decay:9"]}, "reduce names the column decay twice"),
        ({"reduce": []}, r"reduce is \[\]; give a text"),
        ({"within": [30, 70]}, r"is \[30, 70\]; give one limit"),
        ({"within": [60, "2min"], "reduce": "count"}, "some have no unit; give every entry a unit, or none"),
        ({"within": [30, -70], "reduce": "count"}, r"within is \[30, -70\]; give a distance of 0 or more"),
    ):
        with pytest.raises(ValueError, match=says):
            od(source, None, positions([3]), **options)
