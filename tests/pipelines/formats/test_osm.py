"""Road networks from OpenStreetMap: profiles, contraction, restrictions of turns, and files that are refused."""

from itertools import pairwise

import numpy as np
import osmium
import pytest
from campaigns import campaign, pick, play
from commands import run_command
from openstreetmap import MODES, arcs_of, expected_arcs, random_extract, write
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pipelines import import_graph
from pipelines.formats.graphs import FormatError
from pipelines.formats.graphs.osm import reading
from pipelines.formats.graphs.osm.contraction import contracted
from pipelines.formats.graphs.osm.largest_component import largest_component
from pipelines.formats.graphs.osm.profiles import FOLDER, Travel, read_profile
from pipelines.formats.graphs.osm.restrictions import forbidden_turns
from pipelines.stores.lines import Lines

CROSS = {1: (13.0, 52.0), 2: (13.001, 52.0), 3: (13.002, 52.0), 4: (13.001, 52.001), 5: (13.001, 51.999)}
STREETS = [(10, [1, 2, 3], {"highway": "residential"}), (11, [4, 2, 5], {"highway": "residential"})]


@pytest.fixture
def load(tmp_path):
    """load(nodes, ways, relations, name=..., **options): the imported graph of an extract."""

    def load(nodes, ways, relations=(), name="town.osm.pbf", **options):
        file = write(tmp_path / name, nodes, ways, relations)
        return import_graph(file, tmp_path / "store", overwrite=True, **options)

    return load


@campaign(few=25, many=5000)
def test_random_extracts_campaign(seeds, tmp_path):
    def trial(rng):
        (nodes, ways), profile = random_extract(rng), pick(rng, list(MODES))
        expected = expected_arcs(nodes, ways, profile)
        file = write(tmp_path / pick(rng, ["town.osm.pbf", "town.osm"]), nodes, ways)
        if not expected:
            with pytest.raises(FormatError, match=f"profile.* {profile}|no places"):
                import_graph(file, tmp_path / "store", profile=profile)
            return "refused"
        roads = contracted(reading.read_ways(str(file), read_profile(profile)))
        lines = Lines(roads.numbers, roads.offsets, roads.points)
        along = arcs_of(lines, roads.places, roads.tails, roads.heads, roads.names, nodes)
        found = sorted(zip(along, roads.metres.tolist(), roads.seconds.tolist(), strict=True))
        assert [each[0] for each in found] == [each[0] for each in expected]
        assert [each[1:] for each in found] == [pytest.approx(each[1:], rel=1e-6) for each in expected]
        vertices = {end for arc in expected for end in (arc[0][0], arc[0][-1])}
        assert set(roads.names[~roads.through].tolist()) == {id_ for id_ in vertices if len(nodes[id_]) > 2}
        return None

    play(seeds, trial)


TRAVELS = [
    ("car", {"highway": "residential", "maxspeed": "30 mph"}, (48.28032, 48.28032)),
    ("car", {"highway": "residential", "maxspeed": "50mph"}, (80.4672, 80.4672)),
    ("car", {"highway": "motorway", "maxspeed": "none"}, (130, 0)),
    ("car", {"highway": "motorway", "oneway": "no"}, (110, 110)),
    ("car", {"highway": "primary", "maxspeed": "RO:urban"}, (50, 50)),
    ("car", {"highway": "primary", "maxspeed:forward": "70", "maxspeed": "50"}, (70, 50)),
    ("car", {"highway": "primary", "maxspeed": "signals"}, (65, 65)),
    ("car", {"highway": "residential", "oneway": "reversible"}, (30, 30)),
    ("car", {"highway": "residential", "oneway": "-1"}, (0, 30)),
    ("car", {"highway": "footway"}, None),
    ("car", {"highway": "track", "motor_vehicle": "agricultural"}, None),
    ("car", {"highway": "track", "access": "yes"}, (15, 15)),
    ("car", {"highway": "service", "access": "private", "motorcar": "yes"}, (15, 15)),
    ("car", {"highway": "pedestrian", "area": "yes", "motor_vehicle": "yes"}, None),
    ("car", {"route": "ferry", "duration": "01:30"}, (15, 15, 5400)),
    ("car", {"route": "ferry", "motor_vehicle": "no"}, None),
    ("car", {"route": "bus"}, None),
    ("bike", {"highway": "residential", "oneway": "yes", "oneway:bicycle": "no"}, (18, 18)),
    ("bike", {"highway": "residential", "maxspeed": "10"}, (10, 10)),
    ("bike", {"highway": "footway", "bicycle": "dismount"}, None),
    ("bike", {"highway": "tertiary", "junction": "roundabout"}, (18, 0)),
    ("foot", {"highway": "tertiary", "junction": "roundabout", "oneway": "yes"}, (5, 5)),
    ("foot", {"highway": "steps", "maxspeed": "1"}, (3, 3)),
]


@pytest.mark.parametrize(("profile", "tags", "expected"), TRAVELS)
def test_a_profile_decides_by_tags(profile, tags, expected):
    found = read_profile(profile).travel(tags)
    assert found == (None if expected is None else Travel(*expected))


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("plane", "profile (--profile) is 'plane'; choose car, bike, foot, or a .toml file"),
        ("maxsped = 'limit'\n", "there is no entry `maxsped`"),
        ("maxspeed = 'often'\n", "`maxspeed` is 'often'; choose speed, limit, ignored"),
        ("[speeds]\nroad = 0\n", "[speeds]: road is 0"),
        ("access = 'yes'\n", "`access` is 'yes'; write a list of texts"),
        ("ferry = true\n", "`ferry` is True"),
        ("ferry = 1\n", "the entry `access` is missing"),
        ("speeds = 3\n", "below [speeds]"),
        ("[speeds\n", "is no profile"),
    ],
)
def test_a_wrong_profile_is_refused(given, part, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(given)
    with pytest.raises(FormatError) as caught:
        read_profile(given if given.isalpha() else mine)
    assert part in str(caught.value)


def test_a_changed_copy_of_a_profile_counts(load, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text((FOLDER / "car.toml").read_text().replace("residential = 30", "residential = 20"))
    ratio = load(CROSS, STREETS, profile=mine).weights() / load(CROSS, STREETS).weights()
    assert ratio == pytest.approx(1.5)


@pytest.mark.parametrize("weight", ["time", "length"])
def test_a_store_has_arcs_from_junction_to_junction(load, weight):
    nodes, ways = random_extract(np.random.default_rng(3))
    expected, graph = expected_arcs(nodes, ways, "bike"), load(nodes, ways, profile="bike", weight=weight)
    tails = np.repeat(np.arange(graph.n), np.diff(graph.indptr()))
    along = arcs_of(graph.lines(), graph.coordinates(), tails, graph.indices(), graph.labels(), nodes)
    assert graph.integer_labels
    column = 2 if weight == "time" else 1
    found = sorted(zip(along, graph.weights().tolist(), strict=True))
    assert found == [(arc[0], pytest.approx(arc[column], rel=1e-6)) for arc in expected]
    kinds = {frozenset(step): tags["highway"] for _, line, tags in ways for step in pairwise(line)}
    classes = graph.classes()
    named = [classes.names[number] for number in classes.of_arcs]
    assert all(
        name in {kinds[frozenset(step)] for step in pairwise(line)} for line, name in zip(along, named, strict=True)
    )
    vertices = {end for arc in expected for end in (arc[0][0], arc[0][-1])}
    closed = {int(name) for name, open_ in zip(graph.labels(), graph.through(), strict=True) if not open_}
    assert closed == {id_ for id_ in vertices if len(nodes[id_]) > 2}


def test_a_network_without_one_way_streets_is_undirected(load):
    two_way = load(CROSS, STREETS, profile="foot")
    assert (two_way.directed, two_way.input_edges, two_way.m) == (False, 4, 8)
    assert sorted(two_way.weights()) == pytest.approx(sorted([*[49.449] * 4, *[80.113] * 4]), rel=1e-4)
    assert load(CROSS, [*STREETS, (12, [1, 5], {"highway": "service", "oneway": "yes"})]).directed
    slower = {"highway": "service", "maxspeed:forward": "10"}
    assert load(CROSS, [*STREETS, (12, [1, 5], slower)]).directed


def test_a_ferry_takes_its_duration(load):
    timed = load(CROSS, [*STREETS[1:], (12, [1, 2, 3], {"route": "ferry", "duration": "20"})])
    assert sorted(timed.weights())[:4] == pytest.approx([13.35] * 4, abs=0.01)
    assert sorted(timed.weights())[4:] == pytest.approx([600] * 4)


def test_the_store_names_its_origin_and_says_what_was_taken(load):
    told = []
    far = {8: (14.0, 52.0), 9: (14.0, 52.1)}
    ways = [*STREETS, (12, [8, 9], {"highway": "service", "oneway": "yes"}), (13, [1, 99], {"highway": "service"})]
    graph = load(CROSS | far, ways, report=told.append)
    assert (graph.crs, graph.attribution, graph.weight_unit) == ("EPSG:4326", "© OpenStreetMap contributors", "s")
    seconds = graph.weights().tolist()
    assert (load(CROSS | far, ways, unit="min").weights() * 60).tolist() == pytest.approx(seconds)
    with pytest.raises(FormatError, match="the travel times are in s; name the column of weights"):
        load(CROSS, STREETS, unit="km")
    assert [line.partition("town.osm.pbf: ")[2] for line in told] == [
        "4 of 4 ways for the profile car, 5 roads between 7 vertices; the largest strongly connected component has "
        "71.4 % of them",
        "lacks 1 node of these ways; the ways end there",
    ]


def test_the_largest_component_is_that_of_scipy():
    rng = np.random.default_rng(5)
    for n in range(1, 120):
        tails, heads = rng.integers(0, n, (2, int(1.5 * n)))
        arcs = coo_array((np.ones(len(tails)), (tails, heads)), shape=(n, n))
        _, component = connected_components(arcs, connection="strong")
        assert largest_component(n, tails, heads) == np.bincount(component).max()


def test_large_files_keep_the_nodes_of_their_ways_only(load, monkeypatch):
    digest = load(CROSS, STREETS).digest
    monkeypatch.setattr(reading, "LARGE", 0)
    assert load(CROSS, STREETS).digest == digest


def test_compressed_files_and_ways_before_their_nodes_are_read(load, tmp_path):
    expected = load(CROSS, STREETS)
    for name in "town.osm.gz", "town.osm.bz2", "town.osm":
        assert load(CROSS, STREETS, name=name).digest == expected.digest
    text = (tmp_path / "town.osm").read_text()
    first, last = text.index("<way"), text.index("</osm>")
    nodes = text.index("<node")
    (tmp_path / "ways-first.osm").write_text(text[:nodes] + text[first:last] + text[nodes:first] + text[last:])
    assert import_graph(tmp_path / "ways-first.osm", tmp_path / "s2").digest == expected.digest


REFUSED = [
    ("old.osh.pbf", b"", "is a history"),
    ("changes.osc.gz", b"", "is a file of changes"),
    ("town.osm.pbf", b"\x00" * 20, "cannot be read"),
    ("town.osm", b"<osm version='0.6'><node id='1'", "cannot be read"),
    ("town.osm", b"PK\x03\x04", "cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "part"), REFUSED)
def test_other_files_are_refused(name, content, part, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=part) as caught:
        import_graph(tmp_path / name, tmp_path / "store")
    assert str(tmp_path / name) in str(caught.value)


def test_what_cannot_be_a_network_is_refused(load, tmp_path):
    with pytest.raises(FormatError, match="pbf: has no way for the profile bike, of 1 roads"):
        load(CROSS, [(1, [1, 2], {"highway": "motorway"}), (2, [1, 2], {"building": "yes"})], profile="bike")
    with pytest.raises(FormatError, match="no places of their nodes"):
        load({7: (1.0, 1.0)}, STREETS)
    with pytest.raises(FormatError, match="join no two nodes"):
        load(CROSS, [(1, [1], {"highway": "service"})])
    with pytest.raises(FormatError, match="choose time or length"):
        load(CROSS, STREETS, weight="toll")
    with pytest.raises(FormatError, match="profile='bike' has no meaning"):
        import_graph([("a", "b")], tmp_path / "s", profile="bike")
    file = write(tmp_path / "whole.osm.pbf", CROSS, STREETS)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(FormatError, match="get a new copy if it is cut short"):
        import_graph(file, tmp_path / "s")
    with osmium.SimpleWriter(osmium.io.File(str(tmp_path / "versions.osm.pbf"), "osh.pbf")) as writer:
        writer.add_node(osmium.osm.mutable.Node(id=1, location=(1, 1)))
    with pytest.raises(FormatError, match="is a history"):
        import_graph(tmp_path / "versions.osm.pbf", tmp_path / "s")


def test_a_barrier_is_a_vertex_that_no_path_passes(load):
    nodes = CROSS | {2: (13.001, 52.0, {"barrier": "bollard"}), 4: (13.001, 52.001, {"barrier": "gate"})}
    for profile, closed in ("car", ["2"]), ("bike", []):
        graph = load(nodes, STREETS[:1], profile=profile)
        assert graph.labels().tolist() == sorted(["1", "3", *closed])
        assert [name for name, open_ in zip(graph.labels(), graph.through(), strict=True) if not open_] == closed
    yes = {2: (13.001, 52.0, {"barrier": "bollard", "motor_vehicle": "yes"})}
    assert load(CROSS | yes, STREETS[:1]).n == 2


def test_a_full_disk_and_wrong_places_end_in_an_error(load, tmp_path, monkeypatch):
    file = write(tmp_path / "town.osm", CROSS, STREETS)
    file.write_text(file.read_text().replace('lat="52.001"', 'lat="52.0x1"'))
    with pytest.raises(FormatError, match="cannot be read .*coordinate"):
        import_graph(file, tmp_path / "s")
    monkeypatch.setattr(reading, "LEAST_FREE", 1 << 62)
    with pytest.raises(OSError, match="No space left"):
        load(CROSS, STREETS)


def turns(nodes, ways, relations, path, profile="car"):
    """The forbidden turns as {(node before, node, node after)}."""
    found = contracted(found_ways := reading.read_ways(str(write(path, nodes, ways, relations)), read_profile(profile)))
    pairs = forbidden_turns(found_ways.restrictions, found)
    assert (found.heads[pairs[:, 0]] == found.tails[pairs[:, 1]]).all()
    assert found.through.all()
    return {(int(found.last_nodes[a]), int(found.names[found.heads[a]]), int(found.first_nodes[b])) for a, b in pairs}


def restriction(kind, from_way, via, to_way, **more):
    return [("w", from_way, "from"), ("n", via, "via"), ("w", to_way, "to")], {
        "type": "restriction", "restriction": kind, **more,
    }  # fmt: skip


ARMS = [(10 + k, [k, 2], {"highway": "residential"}) for k in (1, 3, 4, 5)]


def test_relations_forbid_turns(tmp_path):
    def found(*relations, ways=ARMS, nodes=CROSS, **options):
        numbered = [(k, *relation) for k, relation in enumerate(relations)]
        return turns(nodes, ways, numbered, tmp_path / "town.osm.pbf", **options)

    assert found(restriction("no_left_turn", 11, 2, 14)) == {(1, 2, 4)}
    assert found(restriction("only_straight_on", 11, 2, 13)) == {(1, 2, k) for k in (1, 4, 5)}
    assert found(restriction("no_u_turn", 11, 2, 11)) == {(1, 2, 1)}
    assert found(restriction("no_left_turn", 11, 2, 14, **{"except": "psv;motorcar"})) == set()
    assert found(restriction("no_left_turn", 11, 2, 14), profile="foot") == set()
    assert found(restriction("no_left_turn", 11, 2, 14), profile="bike") == {(1, 2, 4)}
    # a way that goes on behind the node: no turn back, but straight on; and a turn from both of its ends
    assert found(restriction("no_u_turn", 10, 2, 10), ways=STREETS) == {(1, 2, 1), (3, 2, 3)}
    assert found(restriction("no_straight_on", 10, 2, 10), ways=STREETS) == {(1, 2, 3), (3, 2, 1)}
    # a node that would be contracted stays
    assert found(restriction("no_straight_on", 11, 2, 13), ways=ARMS[:2]) == {(1, 2, 3)}
    by_way = [("w", 11, "from"), ("w", 13, "via"), ("w", 14, "to")], {"type": "restriction", "restriction": "no_u_turn"}
    assert found(by_way) == set()


def test_the_command_imports_by_a_profile(tmp_path):
    write(tmp_path / "town.osm.pbf", CROSS, [*STREETS, (12, [3, 4], {"highway": "cycleway"})])
    arguments = ["import", str(tmp_path / "town.osm.pbf"), str(tmp_path / "s.zarr"), "--profile", "bike"]
    result = run_command(*arguments)
    assert "3 of 3 ways for the profile bike" in result.output
