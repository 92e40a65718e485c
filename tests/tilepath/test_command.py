"""The command `tilepath` as a user calls it, on a real file and on mistakes."""

import ast
import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import networkx as nx
import pytest
from commands import invoke
from matplotlib.image import imread

from clusters.errors import ClusterError
from tilepath import cli
from tilepath.cli import cluster, main
from tilepath.cli.command import SECTIONS
from tilepath.cli.messages import with_options

ROOT = Path(__file__).parents[2]
ROME = "scripts/data/rome99.gr"
SQUARE = "p sp 4 5\na 1 2 5\na 2 3 5\na 3 4 5\na 4 1 5\na 1 3 7\n"


@pytest.fixture
def tilepath(tmp_path, monkeypatch, capfd):
    """Run the command in this process, which saves its imports, or in one of its own; what it prints, or the error."""

    def call(*arguments, code=0, process=False):
        if process:
            run = [sys.executable, "-c", "from tilepath.cli import main; main()", *map(str, arguments)]
            done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
            status, out, err = done.returncode, done.stdout, done.stderr
        else:
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(sys, "argv", ["tilepath", *map(str, arguments)])
            capfd.readouterr()
            status = 0
            try:
                main()
            except SystemExit as stop:
                status = stop.code
            out, err = capfd.readouterr()
        assert status == code, err
        assert "Traceback" not in err
        call.said = out + err
        return out if code == 0 else err

    (tmp_path / "square.gr").write_text(SQUARE)
    return call


def test_from_a_file_to_a_route(tilepath, tmp_path):
    assert "4 vertices, 5 arcs" in tilepath("import", "square.gr", "g.zarr", "--unit", "km")
    out = tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu", "--verify", process=True)
    assert "4 x 4 int32 distances" in out
    assert "proved" in out
    assert tilepath("path", "d.zarr", "1", "4").splitlines() == ["1 -> 4: 12 km over 2 arcs", "1 -> 3 -> 4"]
    assert "diameter" in tilepath("stats", "d.zarr", "--out", "measures.csv")
    assert len((tmp_path / "measures.csv").read_text().splitlines()) == 5
    (tmp_path / "pairs.csv").write_text("source,target\n1,4\n2,1\n")
    assert "2 paths" in tilepath("path", "d.zarr", "--pairs", "pairs.csv", "--out", "routes.csv")
    assert "2 3 4 1" in (tmp_path / "routes.csv").read_text()
    assert "checked: " in tilepath("info", "d.zarr", "--verify")
    assert "checked: " in tilepath("info", "g.zarr", "--verify")
    tilepath("picture", "d.zarr", "d.png")
    tilepath("picture", "d.zarr", "coarse.png", "--dpi", "50")
    assert [imread(tmp_path / name).shape[:2] for name in ("d.png", "coarse.png")] == [(900, 1080), (300, 360)]
    refused = tilepath("picture", "d.zarr", "e.png", "--size", "3", code=2)
    assert "--size cannot go with a picture of a store of distances" in refused
    few = tilepath(
        "apsp", "g.zarr", "few.zarr", "--device", "cpu", "--source", "3", "--source", "1", "--dtype", "int16"
    )
    assert "2 x 4 int16" in few


def test_mistakes_are_one_line_with_the_cure(tilepath, tmp_path):
    assert "no such store" in tilepath("info", "nothing.zarr", code=1)
    tilepath("import", "square.gr", "g.zarr")
    assert "--overwrite" in tilepath("import", "square.gr", "g.zarr", code=1)
    assert "no vertex '9'" in tilepath("apsp", "g.zarr", "d.zarr", "--source", "9", code=1)
    twice = tilepath("od", "g.zarr", "t.csv", "--within=5", "--also=length", "--also=toll", "--within=9", code=2)
    assert "Error: --within: give this option once; it is here 2 times" in twice
    both = tilepath("import", "square.gr", "h.zarr", "--overwrite", "--overwrite", "--directed", "--undirected", code=2)
    assert "Error: --undirected and --directed: give this option once" in both
    (tmp_path / "cycle.gr").write_text("p sp 2 2\na 1 2 5\na 2 1 -6\n")
    tilepath("import", "cycle.gr", "c.zarr")
    assert "1 -> 2 -> 1 weighs -1" in tilepath("apsp", "c.zarr", "d.zarr", "--device", "cpu", code=1)
    assert not (tmp_path / "d.zarr").exists()
    tilepath("sssp", "g.zarr", "p.zarr", "--source", "1", "--device", "cpu")
    assert "distances/2" in tilepath("stats", "p.zarr", code=1)
    assert "'' is not the address" in tilepath("apsp", "g.zarr", "d.zarr", "--scheduler", "", code=1)
    refusal = tilepath("apsp", "g.zarr", "d.zarr", "--scheduler", "127.0.0.1:9", "--timeout", ".1", code=1)
    assert "no scheduler answers at 127.0.0.1:9 within 0.1 s" in refusal


def test_outputs_that_cannot_be_are_refused_with_the_cure(tilepath, tmp_path):
    tilepath("import", "square.gr", "g.zarr")
    (tmp_path / "from.csv").write_text("vertex\n1\n")
    (tmp_path / "broken.csv").symlink_to("nothing.csv")
    for command in "import square.gr", "apsp g.zarr", "od g.zarr --origins from.csv", "export g.zarr", "picture g.zarr":
        assert "the name is empty; give the name of a file or a store" in tilepath(*command.split(), "", code=2)
    for out in "od.csv", "od.zarr":
        both = tilepath("od", "g.zarr", out, "--origins", "from.csv", "--resume", "--overwrite", code=1)
        assert "--resume continues an output, and --overwrite begins it again; pass one of them" in both
    for option in ["--resume"], ["--overwrite"], []:
        assert "broken.csv is a link" in tilepath(
            "od", "g.zarr", "broken.csv", "--origins", "from.csv", *option, code=1
        )
    refusal = tilepath("apsp", "g.zarr", "/proc/d.zarr", "--device", "cpu", code=1)
    assert "/proc/d.zarr: cannot be written (/proc is not on a disk); choose another place" in refusal


def test_a_former_command_names_the_command_that_replaces_it(tilepath):
    assert "no command 'partition' any more; use `tilepath hierarchy" in tilepath("partition", "g", "out", code=2)
    assert "No such command 'partitions'" in tilepath("partitions", code=2)


def test_one_is_not_counted_as_many(tilepath, tmp_path):
    """Of one arc, one row, one node, one sample."""
    (tmp_path / "one.csv").write_text("0,1\n")
    (tmp_path / "row.csv").write_text("a\n5\n")
    (tmp_path / "from.csv").write_text("vertex\n0\n")
    (tmp_path / "pairs.csv").write_text("source,target\n0,1\n")
    for command in (
        "import one.csv g.zarr",
        "apsp g.zarr d.zarr --device cpu --source 0 --verify",
        "info d.zarr",
        "path d.zarr 0 1",
        "path d.zarr --pairs pairs.csv --out paths.csv",
        "stats d.zarr",
        "sssp g.zarr p.zarr --device cpu --source 0 --together --verify",
        "info p.zarr",
        "hierarchy g.zarr h.zarr --device cpu",
        "info h.zarr",
        "od h.zarr o.csv --origins from.csv --destinations from.csv",
        "od h.zarr o.zarr --origins from.csv --destinations from.csv",
        "info o.zarr",
        "euler g.zarr e.zarr --path --device cpu",
        "path e.zarr --out walk.csv",
        "export g.zarr g.csv",
        "graph show g.zarr --out rows.txt",
        "som import row.csv s.zarr --transform a=log",
        "info s.zarr",
        "som train s.zarr m.zarr --rows 1 --columns 1 --epochs 1 --device cpu",
        "som map m.zarr s.zarr n.zarr --out units.csv --device cpu",
        "som cluster m.zarr c.csv --clusters 1",
    ):
        tilepath(*command.split())
        assert not re.findall(r"(?<![\d.,-])1 (?!is\b|ms\b|pairs/s)[a-z]+s\b.*", tilepath.said), command


# An argument of Python in a message: name=value, or a name of several words.
ARGUMENT = re.compile(r"(?<![\w./'\"`-])(?:[a-z]+(?:_[a-z]+)*=|[a-z]+(?:_[a-z]+)+\b)|\b(?:True|False|None)\b")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("euler g.zarr e.zarr --undirected", "there is a circuit along every edge both ways: leave out --undirected"),
        ("euler way.zarr e.zarr", "store each edge as two arcs, one in each direction, and pass --undirected"),
        ("assemble r.fa c.fa --min-coverage -1", "Error: --min-coverage is -1; give a whole number from 1"),
        ("assemble r.fa c.fa --tips -5", "Error: --tips is -5; give"),
        ("assemble r.fa c.fa --min-coverage 99", "occurs 99 times in the reads; give a smaller --min-coverage"),
        ("import names.csv n.zarr --no-header", "pass --labels if vertices have names"),
        ("import far.csv n.zarr", "or if the numbers are names, pass --labels"),
        ("import square.gr n.zarr --simplify --unsorted", "leave out --simplify or --unsorted"),
        ("import some.graphml n.zarr --weight w", "choose another --weight"),
        ("som train s.zarr m.zarr --rows 2 --columns 2 --online --piece-rows 0", "--piece-rows"),
        ("od g.zarr \udcff.parquet --origins from.csv", ".parquet: the name is not UTF-8; choose another"),
        ("od g.zarr o.csv --origins from.csv --nearest 0", "Error: --nearest is 0; give a whole number from 1"),
        ("od g.zarr o.csv --origins from.csv --reduce mean", "Error: --reduce is 'mean'; give count, min"),
        ("od g.zarr o.npy --origins from.csv --within 2", "for --within, --nearest, --reduce, --paths, --also"),
        (
            "od g.zarr o.csv --origins from.csv --paths --reduce count",
            "Error: --paths does not go with --reduce; leave",
        ),
        (
            "generate grid n.zarr --rows 2 --edges 5",
            "--edges is no option of a graph of kind grid; its options are --",
        ),
        ("generate grid n.zarr", "the number of vertices is missing; give --scale or --rows"),
        ("generate grid n.zarr --rows 2 --scale 3", "--scale and --rows 2 both set the number of vertices"),
        ("export g.zarr from.csv", "from.csv exists already; choose another name or pass --overwrite"),
        (
            "apsp g.zarr g2.zarr --device cpu",
            "g2.zarr exists already; choose another name or pass --overwrite or --resume",
        ),
        ("sssp g.zarr n.zarr --source 1 --cutoff -1 --device cpu", "Error: --cutoff is -1"),
        ("apsp g.zarr d.zarr --device cpu --protocol ucx", "Error: --protocol ucx: for GPU workers only"),
        ("apsp g.zarr d.zarr --scheduler-file f --scheduler tcp://a:1", "--scheduler-file and --scheduler both name"),
    ],
)
def test_messages_name_options_and_not_arguments_of_python(tilepath, tmp_path, command, message):
    (tmp_path / "r.fa").write_text(">r\n" + "ACGTTGCAACGGTACCATGA" * 3)
    (tmp_path / "star.csv").write_text("1,2\n1,3\n1,4\n2,1\n3,1\n4,1\n")
    (tmp_path / "names.csv").write_text("1,2\n1,b\n")
    (tmp_path / "far.csv").write_text(f"1,{2**31 - 2}\n")
    (tmp_path / "way.csv").write_text("1,2\n2,3\n1,3\n")
    nx.write_graphml(nx.path_graph(3), tmp_path / "some.graphml")
    (tmp_path / "from.csv").write_text("vertex\n1\n")
    for name, store in ("star", "g"), ("star", "g2"), ("way", "way"):
        tilepath("import", f"{name}.csv", f"{store}.zarr", "--base", 1)
    words = command.split()
    out = tilepath(*words, code=2 if "--scheduler" in words or "--piece-rows" in words else 1)
    assert message in out
    assert not ARGUMENT.findall(out)


@pytest.mark.filterwarnings("always:.*weights are 1 for each arc")
def test_remarks_and_warnings_name_options_too(tilepath, tmp_path):
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 2, "length")
    nx.write_graphml(graph, tmp_path / "some.graphml")
    tilepath("import", "some.graphml", "g.zarr")
    assert "weights are 1 for each arc; the edges have length: choose one (--weight)" in tilepath.said
    (tmp_path / "far.csv").write_text("node,x,y\n" + "".join(f"{v},{v},0\n" for v in range(3)))
    tilepath("import", "some.graphml", "m.zarr", "--coordinates", "far.csv")
    (tmp_path / "from.csv").write_text("x,y\n3,0\n")
    tilepath("od", "m.zarr", "t.csv", "--origins", "from.csv")
    assert "away; --snap-limit refuses such rows" in tilepath.said


# Arguments that no command has: scripts alone reach these messages, or the argument is one of GeoPandas.
OF_SCRIPTS = {
    "address",
    "allow_override",
    "ax",
    "chunk_rows",
    "connected",
    "copy",
    "dashboard",
    "label_names",
    "memory_limit",
    "security",
    "timeout",
}


def test_no_message_reaches_the_command_line_with_an_argument_of_python():
    """All messages of errors in pipelines and clusters, with the options of all commands."""

    def every(command):
        for each in getattr(command, "commands", {}).values():
            yield from every(each)
        yield command

    options = {param.name: "--option" for command in every(cli.tilepath) for param in command.params}
    found = set()
    for path in (path for package in ("clusters", "pipelines") for path in (ROOT / package).rglob("*.py")):
        for error in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)):
            for text in ast.walk(error):
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                said = "".join(
                    str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "0" for part in parts
                )
                if " " in said:
                    found |= {name.rstrip("=") for name in ARGUMENT.findall(with_options(said, options))}
    assert found - {"True", "False", "None"} <= OF_SCRIPTS


# In a message, commands and what stands in backticks; and an option with its argument of Python.
COMMANDS = re.compile(r"`[^`]*`|\b(?:tilepath|dask scheduler) [^;,)]*")
OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")


def texts(path):
    """The texts of a module with blanks, apart from docstrings; 0 stands for the value of an expression."""
    tree = ast.parse(path.read_text())
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            described |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


def test_a_message_of_python_names_the_argument_of_each_option():
    """As `name (--option)`, `name=value (--option)` or `(name, --option)`."""

    def every(command):
        for each in getattr(command, "commands", {}).values():
            yield from every(each)
        yield from command.params

    # Arguments of Python that commands call otherwise.
    arguments = {"--device": {"client"}, "--scheduler": {"address", "client"}, "--workers": {"client"}}
    arguments |= {"--from": {"initial"}, "--undirected": {"directed"}, "--unsorted": {"sorted_rows"}}
    for param in every(cli.tilepath):
        for option in (*param.opts, *param.secondary_opts):
            arguments.setdefault(option, set()).add(param.name)
    silent, named = [], 0
    for path in (path for package in ("clusters", "gpuops", "pipelines") for path in (ROOT / package).rglob("*.py")):
        for text in (COMMANDS.sub("", text) for text in texts(path) if " " in text):
            for found in OPTION.finditer(text):
                names = "|".join(arguments.get(found[0], {"no command has the option"}))
                before = rf"\b(?:{names})(?:=[^()]*)?(?: \((?:leave out )?|, (?:--[a-z-]+, )*)$"
                if re.search(before, text[: found.start()]):
                    named += 1
                else:
                    silent.append((str(path.relative_to(ROOT)), found[0], text))
    assert named > 100
    assert not silent, silent


def test_the_dashboard_is_served_and_its_address_is_printed(monkeypatch, capsys):
    def start(dashboard, **_options):
        assert dashboard
        return SimpleNamespace(dashboard_link="http://127.0.0.1:8787/status")

    monkeypatch.setattr("clusters.start", start)
    cluster._open_client(dict.fromkeys(cluster.NAMES) | {"device": "cpu", "dashboard": True})
    assert capsys.readouterr().err == "Dashboard: http://127.0.0.1:8787/status\n"


def test_d_verify_and_info_for_people_and_for_scripts(tilepath, tmp_path):
    tilepath("import", "square.gr", "g.zarr")
    out = tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu", "--verify")
    assert out.endswith(", proved 4 of 4 rows\n")
    out = tilepath("sssp", "g.zarr", "p.zarr", "--device", "cpu", "--source", "1", "--verify")
    assert out.endswith(", proved 1 of 1 row\n")
    for store, rows, told in (
        ("d.zarr", "2", "proved 2 of 4 rows: 10 arcs tested, the longest path has 2 arcs"),
        ("d.zarr", "all", "proved 4 of 4 rows: 20 arcs tested, the longest path has 3 arcs"),
        ("p.zarr", "16", "proved 1 of 1 row: 5 arcs tested, the longest path has 2 arcs"),
    ):
        lines = tilepath("verify", store, "--rows", rows).splitlines()
        assert lines[-2].startswith("checked: every chunk of ")
        assert lines[-1] == told
    (tmp_path / "o.csv").write_text("vertex\n1\n3\n")
    tilepath("od", "g.zarr", "t.zarr", "--origins", "o.csv")
    tilepath("euler", "g.zarr", "e.zarr", "--device", "cpu", "--path")
    for store, told in (
        ("g.zarr", "a graph store has no certificate"),
        ("t.zarr", "`tilepath verify HIERARCHY --rows 100` proves rows of the hierarchy"),
        ("e.zarr", "`tilepath euler --verify` proves a walk"),
    ):
        checked, _, last = tilepath("verify", store, "--rows", "2").rpartition("no row is proved: ")
        assert checked == tilepath("info", store, "--verify")
        assert told in last
    assert "--rows is none; give a number" in tilepath("verify", "d.zarr", "--rows", "none", code=2)
    facts = json.loads(tilepath("info", "d.zarr", "--json", "--verify"))
    assert (facts["schema"], facts["complete"], facts["attributes"]["n"]) == ("distances/2", True, 4)
    (tmp_path / "g.zarr").rename(tmp_path / "moved.zarr")
    assert "no longer at" in tilepath("verify", "d.zarr", code=1)
    assert "proved 4 of 4 rows" in tilepath("verify", "d.zarr", "--graph", "moved.zarr")


def test_d_a_wrong_row_is_found_by_verify(tilepath, tmp_path, monkeypatch):
    tilepath("import", "square.gr", "g.zarr")
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.apsp.in_memory.resident_rows.finish", lambda job, rows, vertices: rows.fill(0))
        tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu")
    tilepath("info", "d.zarr", "--verify")  # it is what was written
    assert "the distance from vertex" in tilepath("verify", "d.zarr", code=1)


def test_the_snippet_of_the_readme_runs_twice(tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    *_, snippet = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    (tmp_path / "scripts").symlink_to(root / "scripts")
    (tmp_path / "snippet.py").write_text(snippet)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "snippet.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(0, ")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("snippet.py", run_name="__main__")  # over the results of the first run
    assert capsys.readouterr().out == done.stdout


def choices(*names):
    """What an option of a command offers: `names` are those of groups and commands, the last that of the parameter."""
    *commands, parameter = names
    command = cli.tilepath
    for name in commands:
        command = command.commands[name]
    (found,) = (each for each in command.params if each.name == parameter)
    return tuple(found.type.choices)


def test_no_option_takes_nan():
    """It would pass by every bound."""

    def walk(command):
        yield from command.params
        for each in getattr(command, "commands", {}).values():
            yield from walk(each)

    floats = [each for each in walk(cli.tilepath) if isinstance(each.type, click.types.FloatParamType)]
    assert len(floats) > 10
    for option in floats:
        with pytest.raises(click.BadParameter, match="'nan' is not a number"):
            option.type.convert("nan", option, None)
        assert option.type.convert("-2.5", option, None) == -2.5


def test_a_training_has_the_same_defaults_wherever_it_is_asked_for():
    """In the help of the command, and in the signatures of `train_som` and of both estimators."""
    from pipelines import train_som
    from tilepath.sklearn import SelfOrganizingMap, SelfOrganizingMapClassifier

    page = invoke("som", "train", "--help").output
    of_options = re.findall(r"^  --([a-z-]+)(.*?)(?=^  -|^$)", page, re.DOTALL | re.MULTILINE)
    helps = {name.replace("-", "_"): " ".join(text.split()) for name, text in of_options}
    compared = set()
    for call in train_som, SelfOrganizingMap, SelfOrganizingMapClassifier:
        defaults = {name: found.default for name, found in inspect.signature(call).parameters.items()}
        for name in {*helps} & {*defaults}:
            if defaults[name] is None or defaults[name] is False:
                assert "[default:" not in helps[name], (call, name)
            else:
                shown = rf"(\[default: \(?|, else ){re.escape(str(defaults[name]))}[;.)\]]"
                assert re.search(shown, helps[name]), (call, name)
                compared.add(name)
    assert compared >= {"kernel", "epochs", "sigma_end", "schedule", "initial", "rate", "rate_end", "metric", "seed"}


def test_choices_are_those_of_the_library():
    """They are written out in the command line, so that --help need not import what knows them."""
    from gpuops.numbers import DISTANCE_DTYPES
    from gpuops.som import METRICS
    from gpuops.som.grid import NEIGHBOURHOODS
    from pipelines import generators
    from pipelines.apsp import solve
    from pipelines.euler import plan
    from pipelines.formats import graphs, samples
    from pipelines.pictures import graphs as picture
    from pipelines.som import clusters, pictures, schedule, train
    from pipelines.stores.paths import PATH_DTYPES
    from pipelines.stores.scaling import SCALINGS

    assert choices("apsp", "method") == ("auto", *(method.name for method in solve.METHODS))
    assert choices("apsp", "dtype") == tuple(map(str, DISTANCE_DTYPES))
    assert choices("sssp", "dtype") == tuple(map(str, PATH_DTYPES))
    assert choices("euler", "method") == plan.METHODS
    assert set(choices("generate", "kind")) == set(generators.KINDS)
    assert set(choices("import", "file_format")) == set(graphs.FORMATS)
    assert set(choices("som", "import", "format")) == set(samples.FORMATS)
    assert choices("som", "import", "scaling") == tuple(SCALINGS)
    assert choices("som", "train", "metric") == tuple(METRICS)
    assert choices("som", "cluster", "method") == clusters.METHODS
    assert choices("som", "cluster", "linkage") == clusters.LINKAGES
    assert choices("som", "train", "kernel") == NEIGHBOURHOODS
    assert choices("som", "train", "schedule") == schedule.SCHEDULES
    assert choices("som", "train", "initial") == train.STARTS
    assert choices("som", "plot", "kind") == pictures.KINDS
    assert choices("picture", "kind") == picture.KINDS


def pages(group, *names):
    """Every command with its names, of a group and the groups in it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from pages(command, *names, name)
        else:
            yield [*names, name], command


@pytest.mark.parametrize(("names", "command"), list(pages(cli.tilepath)))
def test_every_page_has_an_example_of_its_command(names, command):
    program, *words = shlex.split(command.example)
    assert [program, *words[: len(names)]] == ["tilepath", *names]
    command.make_parser(click.Context(command)).parse_args(words[len(names) :])
    page = invoke(*names, "--help").output
    assert f"Example:\n  {command.example}" in page
    assert ("Where to compute:" in page) == ("--device [" in page)


def test_every_command_is_in_a_section_with_its_whole_summary():
    page = invoke("--help").output
    listed = [command.name for commands in SECTIONS.values() for command in commands]
    assert sorted(listed) == sorted(cli.tilepath.commands)
    assert "..." not in page.partition("Options:")[2]


def test_sssp_takes_the_device_that_ends_first_and_says_why(tmp_path, monkeypatch):
    """A large graph is worth the start of a GPU, a small one is not; options that name workers decide by themselves."""
    started = []

    def start(device, **options):
        started.append(device)
        raise ClusterError("not in this test")

    def stderr(*arguments):
        return invoke("sssp", *arguments, tmp_path / "p.zarr", "--source", "1").stderr

    monkeypatch.setattr("clusters.start", start)
    monkeypatch.setattr("clusters.gpus.visible", lambda: ["0"])
    monkeypatch.setattr("clusters.gpus.missing", lambda: None)
    monkeypatch.setattr("gpuops.warming.is_cold", lambda: False)
    assert "On the CPU: the run takes about " in stderr("rmat:10")
    assert "On the GPU: the run takes about " in stderr("rmat:28")
    for options in ["--device", "cpu"], ["--device", "gpu"], ["--workers", "1"]:
        assert "On the " not in stderr("rmat:10", *options)
    monkeypatch.setattr("clusters.gpus.visible", list)
    assert "On the " not in stderr("rmat:10")
    assert started == ["cpu", "gpu", "cpu", "gpu", "auto", "auto"]
