"""What each store of a folder may hold after some commands: a model, and the checks of commands against it.

A command that does not complete leaves the store that was there, and a command that completes leaves no temporary
files. An error is one line that names what is wrong and the cure. A store that nothing happened to passes
``info --verify``, and what passes holds contents that the model allows.
"""

import contextlib
import itertools
import json
import re
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
from click.testing import CliRunner
from hypothesis.stateful import RuleBasedStateMachine
from store_contents import shown

from clusters import ClusterError
from tilepath import cli

# The names of stores, by kind: graphs, distances, paths, hierarchies, matrices, circuits, samples, maps (w) and units.
NAMES = {kind: (f"{kind}1", f"{kind}2") for kind in "gdphcswu"} | {"m": ("m1.zarr", "m2.zarr")}
ANY = "".join(NAMES)

SHOWN = (ValueError, OSError, ImportError, ClusterError, click.ClickException, click.Abort)  # by `main`, as one line
RESUMING = {"apsp", "sssp", "hierarchy", "od", "train", "map"}
# Errors have a cure after the fault. Errors about the graph, which the store holds as it was meant, have none.
CURE = r"; |no path leads|unequal numbers of arcs"


@dataclass
class Store:
    """What a store may hold.

    Attributes
    ----------
    allowed : the contents that it may hold, none if it must be refused; None for any
    inputs : the contents of the stores that it was made from, by their names; None if these are not known
    finished : False if it may be unfinished
    whole : False if something in it may be damaged
    honest : False if a chunk or an attribute in it may be another one, which reading alone need not find
    ours : False if it may not even be recognized as a store that may be replaced
    recorded : its attributes before they were changed; None if they were not
    """

    allowed: list | None
    inputs: dict | None = field(default_factory=dict)
    finished: bool = True
    whole: bool = True
    honest: bool = True
    ours: bool = True
    recorded: dict | None = None

    @property
    def sound(self):
        return self.finished and self.whole

    @property
    def certain(self):
        return self.sound and self.allowed is not None and len(self.allowed) == 1


@dataclass(frozen=True)
class Run:
    """How a command runs: over what is there (`mode`), stopped at the rename `at`, and then begun again or not."""

    mode: str = ""
    stop: str = ""
    at: int = 0
    again: bool = False


class StoreModel(RuleBasedStateMachine):
    """A folder of stores, and the model of it; `stops`, `counts` and `tried` are set by the test."""

    def __init__(self):
        super().__init__()
        self.stores, self.log, self.changed, self.told, self.possible = {}, [], set(), "", True
        self.stops.begin()

    def known(self, kinds):
        return [name for kind in kinds for name in NAMES[kind] if name in self.stores]

    # Run a command

    def run(self, *command):
        """Output of a command, None if it ends with an error that the command line shows as one line."""
        command = [str(word) for word in command]
        self.log.append(f"tilepath {' '.join(command)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(cli.tilepath, command, standalone_mode=False)
        self.counts["commands" if done.exception is None else "errors"] += 1
        if done.exception is not None:
            self.check_error(done.exception, command)
        return done.stdout if done.exception is None else None

    def check_error(self, error, command):
        told = error.format_message() if isinstance(error, click.ClickException) else str(error)
        self.log[-1] += f"  # {type(error).__name__}: {told}"
        self.told = told
        self.must(isinstance(error, SHOWN), "a traceback")
        if isinstance(error, click.Abort):
            return
        named = re.search(r"\bvertex \d", told) or any(word in told for word in [*command[1:], *self.stores])
        self.must(named and "\n" not in told, "an error that names nothing")
        self.must(re.search(CURE, told), "an error without a cure")

    def must(self, holds, what):
        assert holds, f"{what}; after\n" + "\n".join(self.log)

    def read(self, *command):
        """Run a command that reads a verified store."""
        self.must(self.run(*command) is not None, "what was verified cannot be read")

    def write(self, name, make, inputs, how, *command, may_refuse=False):
        """Run a command that writes the store `name` from `inputs`, and say what the store may hold then.

        ``make(*contents of the inputs)`` is what the store holds then, None if the command must refuse these contents.
        """
        made, sure = self.made(make, inputs)
        old, there, growing = self.stores.get(name), self.there(name), self.growing(name)
        hidden = {*Path().glob(f".{name}.*")}
        ours = old is None or old.ours
        self.possible = possible = bool(sure and made.allowed and not may_refuse)
        self.changed.add(name)
        done = False
        with self.stops.at(how.stop, how.at), contextlib.suppress(KeyboardInterrupt):
            done = self.run(*command, *[how.mode] * bool(how.mode)) is not None
        stop = how.stop if self.stops.happened else ""
        if stop:
            self.log[-1] += f"  # {stop} at rename {how.at}"
            self.counts[stop] += 1
        if done and stop != "kill":
            self.must(how.mode or not there, f"{name} was replaced without --overwrite")
            return self.completed(name, made, old if how.mode == "--resume" else None)
        exists = (there and how.mode != "--overwrite") or (how.mode == "--resume" and growing)
        self.must(stop or exists or not ours or not possible, f"{name} was refused")
        sudden = stop in ("kill", "Ctrl-C")  # writes may be under way, and the new store may be in its place already
        left = {*Path().glob(f".{name}.*")} - hidden
        self.must(sudden or not left, f"{left} are left over")
        self.failed(name, made, old, sudden or (how.mode == "--resume" and old is not None and not old.finished))
        if stop and how.again and possible and ours:
            again = "--resume" if RESUMING & {*command[:2]} and self.began(name, how, there, growing) else "--overwrite"
            self.must(self.run(*command, again) is not None, f"{again} is refused after a stop")
            self.completed(name, made, None)
        return None

    def growing(self, name):
        """The attributes of the unfinished store NAME.new, which name the run that writes it; None without one."""
        file = Path(f"{name}.new", "zarr.json")
        return file.read_bytes() if file.exists() else None

    def began(self, name, how, there, growing):
        """Whether ``--resume`` finds what a stopped command began, not what a former one left at NAME.new.

        `there` and `growing` are as they were before the command.
        """
        now = self.growing(name)
        return not there if now is None else how.mode == "--resume" or now != growing

    def made(self, make, inputs):
        """What a command makes of stores, and whether it must make that."""
        sources = [self.stores[name] for name in inputs]
        if any(source.allowed is None or not source.honest for source in sources):
            return Store(None, None), False
        contents = [*itertools.product(*(source.allowed for source in sources))]
        allowed = [each for each in itertools.starmap(make, contents) if each is not None]
        sure = len(contents) == 1 and all(source.sound for source in sources)
        return Store(allowed, dict(zip(inputs, contents[0], strict=True)) if sure else None), sure

    def completed(self, name, made, resumed):
        """A command that writes a store is done; `resumed` is the store that was there and may have been resumed."""
        self.must(made.allowed != [], f"{name} cannot be right")
        left = [*Path().glob(f".{name}.*"), *Path().glob(f"{name}.new"), *Path(name).rglob("*.partial")]
        self.must(not left, f"{left} are left over")
        kept = {} if resumed is None else {key: getattr(resumed, key) for key in ("whole", "honest", "ours")}
        if resumed is not None and not self.records(name, made.inputs):
            kept["inputs"] = None
        self.stores[name] = replace(made, **kept)

    def records(self, name, inputs):
        """Whether the graph that a store names is an input; a resumed store names the graph that it was begun from."""
        graph = json.loads(Path(name, "zarr.json").read_bytes())["attributes"].get("graph")
        return not isinstance(graph, dict) or Path(str(graph.get("path"))).name in (inputs or ())

    def failed(self, name, made, old, changed):
        """A command that writes a store has failed or was killed; the store that was there must be there yet."""
        there = self.there(name)
        self.must(there or old is None, f"{name} is lost")
        if old is None and there:
            self.stores[name] = replace(made, finished=False)
        elif changed and old is not None:
            either = None if None in (old.allowed, made.allowed) else old.allowed + made.allowed
            finished = old.finished and Path(name).exists()
            self.stores[name] = replace(old, allowed=either, inputs=None, finished=finished, recorded=None)

    def there(self, name):
        """Whether there is a store, or one that the next command puts back after a kill between two renames."""
        return Path(name).exists() or any(Path().glob(f".{name}.*.replaced"))

    # Read stores

    def backed(self, name):
        """Whether the stores that a store was made from are what they were."""
        found = self.stores[name]
        return (
            found.certain
            and found.inputs is not None
            and all(
                each in self.stores and self.stores[each].certain and self.stores[each].allowed[0] is content
                for each, content in found.inputs.items()
            )
        )

    def look(self, name):
        """Verify a store and read it."""
        found = self.stores[name]
        verified = self.run("info", name, "--verify", "--json")
        self.must(verified is not None or not found.sound, f"{name} does not verify")
        facts = json.loads(verified or "{}")
        other = found.recorded is not None and verified is not None and facts["attributes"] != found.recorded
        self.must(not other, f"{name} verifies with other attributes")
        if not facts.get("complete"):
            return self.must(not found.sound, f"{name} is unfinished")
        if not self.backed(name) and name[0] in "ch":
            return None  # they are read by the graph
        values = shown(name, self.read, facts["attributes"])
        right = found.allowed and [content for content in found.allowed if content.holds(values)]
        self.must(found.allowed is None or right, f"{name} holds {values}")
        self.stores[name] = Store(right, found.inputs)
        return None

    def teardown(self):
        for name in sorted(self.changed & self.stores.keys()):
            self.look(name)
