"""Plans of runs: memory, disk and time, stated before a run begins, and how to get a plan without the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from pipelines.stores.errors import DiskFullError
from pipelines.stores.place import growing_place, kept_beside
from pipelines.workers.capacity import DoesNotFitError, Needs

T = TypeVar("T", bound=Callable[..., Any])

_asked: ContextVar[bool] = ContextVar("asked", default=False)  # whether the plan alone is asked for
_disk: ContextVar[int] = ContextVar("disk", default=0)  # bytes of the disk that the run has stated


@dataclass(frozen=True, repr=False)
class Plan:
    """The method, memory, disk and time of a run, as estimated before it begins; it prints as its text.

    Attributes
    ----------
    text : str
        Lines for the user: why the method was chosen, the workers, and the memory, disk and time.
    method : str
        The name of the method that the run takes.
    memory_bytes, disk_bytes : int
        Memory of all workers together, and disk of the result and of commits before it. A result that the run replaces
        keeps its own disk until then, in addition.
    seconds : float or None
        Estimated time; None if the run does not estimate it.
    refusal : str or None
        Why the run is refused; None if it fits.
    """

    text: str
    method: str
    memory_bytes: int
    disk_bytes: int
    seconds: float | None
    refusal: str | None = None

    def __repr__(self) -> str:
        return self.text


class _Stated(Exception):
    """Ends a run if only its plan is asked for."""


def plan_only() -> bool:
    """Return whether `planned` began this run, for a run that otherwise writes before it knows its plan."""
    return _asked.get()


def run_plan(text: str, method: str, needs: Needs, seconds: float | None = None) -> Plan:
    """Return the plan of a run; the parameters are as the attributes of `Plan`."""
    return Plan(text, method, sum(needs.device) + sum(needs.host), needs.disk, seconds)


def state_plan(plan: Plan) -> None:
    """State the plan of a run that fits, before anything is written; the run ends here if `planned` began it."""
    if _asked.get():
        raise _Stated(plan)
    _disk.set(plan.disk_bytes)


@contextmanager
def refusing(plan: Plan) -> Iterator[None]:
    """Give the plan to a DoesNotFitError that the block raises, so that a refused run also shows its plan."""
    try:
        yield
    except DoesNotFitError as error:
        error.plan = replace(plan, refusal=str(error))
        raise


@contextmanager
def stating(plan: Plan, out: str | os.PathLike[str] | None = None, writer: Any = None) -> Iterator[tuple[Plan, str]]:
    """State the plan after a block that refuses a run that does not fit.

    If the run writes a store `out`, or resumes it by `writer`, the block gets the path where the store grows; and the
    text of the plan then ends with a clause on the store that is replaced.
    """
    place = "" if out is None else growing_place(out, writer)
    if out is not None:
        plan = replace(plan, text=plan.text + kept_beside(out, place))
    with refusing(plan):
        yield plan, place
    state_plan(plan)


def states_plan(run: T) -> T:
    """Mark a function that calls `state_plan` in every run, for `planned`.

    If the disk becomes full, the error says how much of the disk the run stated.
    """

    @wraps(run)
    def stating_run(*arguments: Any, **options: Any) -> Any:
        token = _disk.set(0)
        try:
            return run(*arguments, **options)
        except DiskFullError as error:
            raise DiskFullError(error.path, error.needs or _disk.get()) from error
        finally:
            _disk.reset(token)

    stating_run.states_plan = True  # type: ignore[attr-defined]
    return stating_run  # type: ignore[return-value]


def planned(run: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    """Return the plan of a run; the run does not begin, and nothing is written.

    >>> plan = tilepath.planned(tilepath.all_pairs_shortest_paths, client, graph, "not written.zarr")
    >>> plan.method, plan.disk_bytes
    ('floyd-warshall', 64)

    Parameters
    ----------
    run : function
        `all_pairs_shortest_paths`, `single_source_shortest_paths`, `build_hierarchy`, `betweenness`, `link_flows`,
        `train_som`, `map_samples` or `euler_circuits`. The plan of a hierarchy follows from an order of the vertices,
        which is computed for the plan.
    arguments, options : arguments of the function
        Without `resume`, since resuming takes over the store.

    Raises
    ------
    ValueError
        The function states no plan, or `resume` is given.
    tilepath.DoesNotFitError
        The run does not fit; the attribute `plan` of the error is the plan of the refused run.
    Exception
        Any other error that the function raises before it states its plan.
    """
    if not getattr(run, "states_plan", False):
        raise ValueError(f"{getattr(run, '__name__', run)} states no plan; call it to run it")
    if options.get("resume"):
        raise ValueError("a plan without a run takes over no store; leave out resume (--resume)")
    token = _asked.set(True)
    try:
        run(*arguments, **options)
    except _Stated as end:
        (plan,) = end.args
        assert isinstance(plan, Plan)
        return plan
    finally:
        _asked.reset(token)
    raise AssertionError(f"{run} is marked, but states no plan")
