"""Rows of a paths store, written as a test has them."""


def write_rows(run, start, distances, predecessors=None):
    """Write whole chunk rows of a `PathsWriter`, from row `start`; predecessors where the store has them."""
    run.opened("distances")[1](start, 0, distances)
    if run.has_predecessors and predecessors is not None:
        run.opened("predecessors")[1](start, 0, predecessors)
