"""Clouds have the shapes they are named after, and come out the same however they are made."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.stats import kstest

from pipelines.formats.graphs.generated import generate
from pipelines.generators.point_clouds import KINDS, PointCloud, write_cloud

N = 4000


def parts(kind, **options):
    """The points of each part."""
    cloud = PointCloud(kind=kind, n=N, seed=11, **options)
    values, labels = cloud.points()
    assert values.shape == (N, cloud.d)
    assert np.isfinite(values).all()
    assert labels.dtype == np.int32
    assert set(labels.tolist()) == set(range(cloud.parts))
    return [values[labels == label] for label in range(cloud.parts)]


def gap(a, b):
    """The least distance between a point of one and a point of the other."""
    return cKDTree(a).query(b)[0].min()


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(1, 60),
    seed=st.integers(0, 2**64 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_any_cutting_makes_the_same_points(kind, n, seed, cuts):
    cloud = PointCloud(kind=kind, n=n, seed=seed, d=3)
    values, labels = cloud.points()
    ends = [0, *sorted(min(cut, n) for cut in cuts), n]
    pieces = [cloud.points(start, stop) for start, stop in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate([piece[0] for piece in pieces]), values)
    np.testing.assert_array_equal(np.concatenate([piece[1] for piece in pieces]), labels)
    longer = PointCloud(kind=kind, n=n + 9, seed=seed, d=3)
    np.testing.assert_array_equal(longer.points(0, n)[0], values)  # a cloud is the beginning of a larger one


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_makes_other_points(kind):
    first, second = (PointCloud(kind=kind, n=500, seed=seed).points() for seed in (0, 1))
    assert not (first[0] == second[0]).any()
    if len(set(first[1].tolist())) > 1:
        assert (first[1] != second[1]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_parts_have_their_shares_and_are_mixed(kind):
    cloud = PointCloud(kind=kind, n=N, seed=5)
    labels = cloud.points()[1]
    shares = np.array(KINDS[kind][2] or [1] * cloud.clusters, float)
    shares /= shares.sum()
    # Five standard deviations of a binomial distribution.
    for half in (labels[: N // 2], labels[N // 2 :]):
        counts = np.bincount(half, minlength=cloud.parts)
        assert (abs(counts - shares * len(half)) <= 5 * np.sqrt(len(half) * shares * (1 - shares)) + 1e-9).all()


def test_blobs_are_normal_around_centres_in_a_cube():
    blobs = parts("blobs", d=4, clusters=3, spread=0.25)
    centres = np.array([blob.mean(axis=0) for blob in blobs])
    assert ((centres > -0.1) & (centres < 10.1)).all()
    assert len({tuple(np.rint(centre)) for centre in centres}) == 3
    for blob in blobs:
        for column in ((blob - blob.mean(axis=0)) / 0.25).T:
            assert kstest(column, "norm").pvalue > 1e-4
        correlation = np.corrcoef(blob.T) - np.eye(4)
        assert abs(correlation).max() < 5 / np.sqrt(len(blob))
    assert np.ptp(parts("blobs", spread=0.0, clusters=1)[0], axis=0).tolist() == [0, 0]


def test_uniform_points_fill_the_unit_cube():
    (points,) = parts("uniform", d=3)
    for column in points.T:
        assert kstest(column, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(points.T) - np.eye(3)).max() < 5 / np.sqrt(N)


def test_chainlink_is_two_rings_one_through_the_other():
    level, upright = parts("chainlink")
    upright = upright[:, [0, 2, 1]] - [1, 0, 0]  # turned into the plane of the other
    for ring in (level, upright):
        around, off = np.hypot(ring[:, 0], ring[:, 1]), ring[:, 2]
        across = np.hypot(around - 1, off)
        assert across.max() <= 0.15 + 1e-12
        assert kstest((across / 0.15) ** 2, "uniform").pvalue > 1e-4  # of the disc
        assert kstest(np.arctan2(ring[:, 1], ring[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-4
        assert abs(np.arctan2(off, around - 1).mean()) < 5 * 1.82 / np.sqrt(len(ring))
    assert gap(*parts("chainlink")) > 0.6
    # Each goes through the disc that the other encloses.
    turned = parts("chainlink")[1]
    through = turned[abs(turned[:, 2]) < 0.02]
    inside = np.hypot(through[:, 0], through[:, 1]) < 0.85
    assert inside.any()
    assert not inside.all()


def test_hepta_is_seven_balls_the_middle_one_denser():
    balls = parts("hepta")
    centres = np.array([[0, 0, 0], [3, 0, 0], [-3, 0, 0], [0, 3, 0], [0, -3, 0], [0, 0, 3], [0, 0, -3]])
    found = np.array([np.rint(ball.mean(axis=0)) for ball in balls])
    assert {tuple(row) for row in found} == {tuple(row) for row in centres}
    for ball, centre in zip(balls, found, strict=True):
        reach = 1.0 if centre.any() else 0.5
        radii = np.linalg.norm(ball - centre, axis=1)
        assert radii.max() <= reach
        assert kstest((radii / reach) ** 3, "uniform").pvalue > 1e-4
    assert not found[0].any()
    assert min(gap(balls[0], ball) for ball in balls[1:]) > 1.5


def test_tetra_is_four_balls_at_equal_distances():
    balls = parts("tetra")
    centres = np.array([ball.mean(axis=0) for ball in balls])
    for i in range(4):
        for j in range(i):
            assert np.linalg.norm(centres[i] - centres[j]) == pytest.approx(2, abs=0.1)
            assert 0.1 <= gap(balls[i], balls[j]) < 0.6  # they nearly touch
        assert np.linalg.norm(balls[i] - centres[i], axis=1).max() < 1.0


def test_target_is_a_disc_a_ring_and_outliers():
    disc, ring, *groups = parts("target")
    assert kstest((np.linalg.norm(disc, axis=1) / 0.8) ** 2, "uniform").pvalue > 1e-4
    radii = np.linalg.norm(ring, axis=1)
    assert 1.8 <= radii.min() < 1.82 < 2.18 < radii.max() <= 2.2
    corners = {tuple(np.rint(group.mean(axis=0)).astype(int)) for group in groups}
    assert corners == {(3, 3), (3, -3), (-3, 3), (-3, -3)}
    for group in groups:
        assert np.ptp(group, axis=0).max() <= 0.2


def test_two_diamonds_touch_in_a_corner():
    left, right = parts("two-diamonds")
    for square, middle in ((left, -1), (right, 1)):
        city_block = abs(square - [middle, 0]).sum(axis=1)
        assert 0.9 < city_block.max() <= 0.98
        np.testing.assert_allclose(square.mean(axis=0), [middle, 0], atol=0.06)
        assert kstest((city_block / 0.98) ** 2, "uniform").pvalue > 1e-4
    assert left[:, 0].max() < right[:, 0].min() < 0.1


def test_wings_are_densest_where_they_are_nearest():
    left, right = parts("wing-nut")
    assert left[:, 0].max() <= -0.15 < 0.15 <= right[:, 0].min()
    for wing in (left, right):
        depth = (abs(wing[:, 0]) - 0.15) / 2
        assert kstest(1 - (1 - depth) ** 2, "uniform").pvalue > 1e-4
        assert kstest(wing[:, 1], "uniform", (np.floor(2 * wing[:, 1].min()) / 2, 3)).pvalue > 1e-4
    assert right[:, 1].mean() - left[:, 1].mean() == pytest.approx(1, abs=0.2)


def test_atom_is_a_ball_within_a_hull():
    core, hull = (np.linalg.norm(part, axis=1) for part in parts("atom"))
    assert kstest((core / 10) ** 3, "uniform").pvalue > 1e-4
    assert 48 <= hull.min() < 48.1 < 51.9 < hull.max() <= 52


def test_engy_time_is_two_normal_distributions():
    narrow, wide = parts("engy-time")
    for part, centre, deviation in ((narrow, 0, 1), (wide, 2.5, 1.5)):
        for column in part.T:
            assert kstest((column - centre) / deviation, "norm").pvalue > 1e-4
        assert abs(np.corrcoef(part.T)[0, 1]) < 5 / np.sqrt(len(part))


def test_the_golf_ball_is_a_sphere():
    (points,) = parts("golf-ball")
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-14)
    for column in points.T:  # a slice of a sphere is as large as it is thick
        assert kstest((column + 1) / 2, "uniform").pvalue > 1e-4


def test_a_cloud_becomes_a_store(tmp_path):
    cloud = PointCloud(kind="tetra", n=300, seed=7)
    samples = write_cloud(cloud, tmp_path / "s", dtype="float64")
    values, labels = cloud.points()
    np.testing.assert_array_equal(samples.values(), values)
    assert np.array(samples.label_names())[samples.labels()].astype(int).tolist() == labels.tolist()
    assert (samples.columns, samples.source) == (("x", "y", "z"), "tetra(n=300, seed=7)")
    samples.verify()
    assert write_cloud(cloud, tmp_path / "t", dtype="float64", piece_values=30).digest == samples.digest
    many = write_cloud(PointCloud(kind="blobs", n=10, d=5), tmp_path / "u", scaling="zscore")
    assert (many.columns, many.scaling.kind) == (("0", "1", "2", "3", "4"), "zscore")
    assert many.source == "blobs(n=10, d=5, clusters=5, spread=0.5, seed=0)"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"kind": "cube"}, "no cloud 'cube'; choose one of blobs, uniform, chainlink"),
        ({"n": 0}, "n is 0; give a whole number from 1"),
        ({"n": 2.5}, "n is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is"),
        ({"d": 0}, "d is 0"),
        ({"clusters": 0}, "clusters is 0"),
        ({"spread": -1.0}, "spread is -1.0"),
        ({"spread": float("nan")}, "spread is nan"),
    ],
)
def test_clouds_that_cannot_be_made_are_refused(options, fault):
    with pytest.raises(ValueError, match=fault):
        PointCloud(**({"kind": "blobs", "n": 10} | options))


@pytest.mark.parametrize(("write", "cure"), [(write_cloud, "PointCloud"), (generate, "synthetic_graph")])
def test_a_name_is_neither_a_cloud_nor_a_graph(tmp_path, write, cure):
    with pytest.raises(ValueError, match=rf"is a str; pass a \w+, such as tilepath.{cure}\("):
        write("blobs", tmp_path / "s")


def test_points_that_are_not_there():
    with pytest.raises(ValueError, match="points 3 to 11 were asked for; there are 0 to 10"):
        PointCloud(kind="blobs", n=10).points(3, 11)
