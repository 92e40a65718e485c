"""Fill the tables of pages that stand between two comments, from the records that the first comment names.

    <!-- NAME of FILES.json -->
    (the table)
    <!-- end of NAME -->

NAME is a key of `TABLES`, FILES the name of a file of benchmarks/results, or a pattern such as scaling-*.

python -m benchmarks.document_tables    fills the pages of `PAGES`
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import scaling_table
from benchmarks.growth import ORDERS, formula, spectra
from benchmarks.harness import RESULTS, ROOT
from benchmarks.kernels.edge_sweeps import PUBLISHED
from benchmarks.kernels.generations import (
    CPU,
    GENERATIONS,
    HARISH_NARAYANAN,
    KATZ_KIDER,
    OPTIMIZED_BLOCKED,
    STAGED_LOAD,
    TILEPATH,
    VARIANTS,
)
from benchmarks.suites.sssp_table import HEAP, OURS

NAMES = ("articles.md", "benchmarks.md", "butterfly.md", "coming-from/scipy.md", "networkx.md", "scaling.md")
PAGES = tuple(ROOT / "docs" / name for name in NAMES)
WHO = ("SciPy", "tilepath")
PLACE = re.compile(r"(<!-- (\S+) of (\S+\.json) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL)
Records = list[dict[str, Any]]


def filled(text: str) -> str:
    """Return the text of a page with all its tables filled from their records."""

    def table(found: re.Match[str]) -> str:
        return found[1] + TABLES[found[2]](records_of(found[3])) + found[5]

    return PLACE.sub(table, text)


def records_of(pattern: str) -> Records:
    """Return the records of all files of a name or pattern, each with its file and its device."""
    records = []
    for path in sorted(RESULTS.glob(pattern)):
        found = json.loads(path.read_text())
        records += [{"file": path.name, "device": found.get("device"), **record} for record in found["records"]]
    if not records:
        raise FileNotFoundError(f"no records in {RESULTS / pattern}")
    return records


def _markdown(header: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    """Return a table of Markdown whose first `left` columns are aligned to the left."""
    header = list(header)
    lines = [header, *rows]
    texts = [f"| {' | '.join(line)} |" for line in lines]
    texts.insert(1, "|---" * left + "|---:" * (len(header) - left) + "|")
    return "\n".join(texts) + "\n"


def _digits(value: float) -> str:
    """Return three significant digits, and all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# --- Shortest paths by sweeps -----------------------------------------------------------------------------------------


def sssp_rates(records: Records) -> str:
    """Return million arcs per second of each variant and of one core: the mean over the sources."""
    titles = {"plain": "neither", "read-only path": "read-only path", "segment sort": "segment sort", "both": "both"}
    assert list(titles) == [variant.name for variant in PUBLISHED]
    rows = []
    for n, found in _by_size(records).items():
        sizes = found["plain"]["sizes"]
        degree = f"{sizes['distinct_arcs'] / n:.1f}"
        rows.append([_power(n), degree, *(_rate(found[way]) for way in (*titles, HEAP))])
    return _markdown(["vertices", "degree without loops and parallel arcs", *titles.values(), "CPU, heap"], rows, 0)


def sssp_race(records: Records) -> str:
    """Return sweeps and times of the race, the same by atomic minima, and searches of tilepath."""
    rows = []
    for n, found in _by_size(records).items():
        sweeps = [found[way]["sweeps"] for way in ("plain", "plain, atomic")]
        ways = ("plain", "plain, atomic", "both", "both, atomic", OURS)
        rows.append(
            [
                _power(n),
                *(text for each in sweeps for text in (f"{each['mean']:.1f}", str(each["apart"]))),
                *(_milliseconds(found[way]) for way in ways),
                *(_times(found[way]) for way in ("both", OURS)),
            ]
        )
    header = ("vertices", "sweeps", "apart", "sweeps, atomic", "apart", "neither, ms", "atomic, ms", "both, ms")
    faster = ("both: times the heap", "`shortest_distances`: times the heap")
    return _markdown([*header, "both, atomic, ms", "`shortest_distances`, ms", *faster], rows, 0)


def _power(n: int) -> str:
    """Return a power of two as text."""
    return f"2^{n.bit_length() - 1}"


def _by_size(records: Records) -> dict[int, dict[str, dict[str, Any]]]:
    """Return the records in float64 by number of vertices and way, for the powers of four; charts have all sizes."""
    sizes: dict[int, dict[str, dict[str, Any]]] = {}
    for record in records:
        n = record["sizes"]["n"]
        if record["dtype"] == "float64" and n.bit_length() % 2:
            sizes.setdefault(n, {})[record["way"]] = record
    return sizes


def _rate(record: dict[str, Any]) -> str:
    return f"{record['arcs_per_second'] / 1e6:,.0f}"


def _times(record: dict[str, Any]) -> str:
    return f"{record['speedup_over_heap']['mean']:,.0f}"


def _milliseconds(record: dict[str, Any]) -> str:
    return _digits(record["seconds"]["median"] * 1e3)


# --- Floyd-Warshall ---------------------------------------------------------------------------------------------------


def _seconds(records: Records) -> dict[str, dict[int, float]]:
    """Return median seconds by generation and size."""
    seconds: dict[str, dict[int, float]] = {}
    for record in records:
        if "generation" in record:
            seconds.setdefault(record["generation"], {})[record["sizes"]["n"]] = record["seconds"]["median"]
    return seconds


def fw_table_1(records: Records) -> str:
    """Return Table 1 of the paper: seconds here and, in brackets, as published."""
    seconds = _seconds(records)
    rows = []
    for n in STAGED_LOAD.published:
        row = [f"{n:,}"]
        for generation in GENERATIONS:
            here, published = seconds[generation.name].get(n), generation.published.get(n)
            texts = f"{here:.3g}" if here else "", f"({published:g})" if published else ""
            row.append(" ".join(filter(None, texts)))
        rows.append(row)
    return _markdown(["n", *(generation.title for generation in GENERATIONS)], rows, 0)


def fw_variants(records: Records) -> str:
    """Return the kernels that do nearly all tasks: resources, and seconds at powers of two."""
    seconds = _seconds(records)
    facts = {record["generation"]: record for record in records if record.get("registers")}
    sizes = [n for n in STAGED_LOAD.published if n.bit_count() == 1 and n >= 4096]
    rows = []
    for generation in (KATZ_KIDER, OPTIMIZED_BLOCKED, *VARIANTS, STAGED_LOAD):
        fact, paper = facts[generation.name], generation.paper
        blocks = f"{fact['blocks_per_multiprocessor']}" + (f" ({paper.blocks})" if paper.blocks else "")
        shared = f"{fact['shared_bytes']:,}" + (f" ({paper.shared_bytes:,})" if paper.shared_bytes else "")
        times = [f"{seconds[generation.name][n]:.3g}" if n in seconds[generation.name] else "" for n in sizes]
        rows.append([generation.title, str(fact["registers"]), shared, blocks, f"{fact['occupancy']:.0%}", *times])
    header = ["kernel", "registers", "shared bytes", "blocks an SM", "threads an SM", *(f"n = {n:,}, s" for n in sizes)]
    return _markdown(header, rows)


ADVERTISED, ADVERTISED_C1060 = 67e12, 933e9  # float32 operations per second of an H100 or H200, and of the paper's GPU


def fw_ratios(records: Records) -> str:
    """Return the ratios that the paper's text names: in the text, by its Table 1, and here."""
    here = _seconds(records)
    paper = {generation.name: generation.published for generation in GENERATIONS}
    pairs = (
        ("Katz & Kider over Harish & Narayanan", "5 to 6", KATZ_KIDER, HARISH_NARAYANAN),
        ("optimized over Katz & Kider", "2.1 to 2.3", OPTIMIZED_BLOCKED, KATZ_KIDER),
        ("staged load over optimized", "2.3 to 2.5", STAGED_LOAD, OPTIMIZED_BLOCKED),
        ("staged load over Katz & Kider", "over 5", STAGED_LOAD, KATZ_KIDER),
        ("staged load over one core", "over 150", STAGED_LOAD, CPU),
        ("tilepath over staged load", "", TILEPATH, STAGED_LOAD),
    )
    rows = [
        [name, text, _ratio(paper[fast.name], paper[slow.name]), _ratio(here[fast.name], here[slow.name])]
        for name, text, fast, slow in pairs
    ]
    constants = [seconds[STAGED_LOAD.name][16384] / 16384**3 for seconds in (paper, here)]
    rows.append(["staged load: seconds / n^3, n = 16,384", "1.2e-11", *(f"{value:.2e}" for value in constants)])
    for generation, text in ((HARISH_NARAYANAN, "359"), (KATZ_KIDER, "62.7"), (STAGED_LOAD, "12.7")):
        cells = []
        for seconds, advertised in ((paper, ADVERTISED_C1060), (here, ADVERTISED)):
            n = max(seconds[generation.name])
            cells.append(_digits(advertised * seconds[generation.name][n] / n**3))
        rows.append([f"{generation.title}: advertised operations a task", text, *cells])
    return _markdown(["", "the paper's text", "its Table 1", "here"], rows)


def _ratio(fast: dict[int, float], slow: dict[int, float]) -> str:
    """Return the least and the largest of slow / fast over the sizes that both have, from n = 2,048 on."""
    ratios = [slow[n] / fast[n] for n in fast if n in slow and n > 1024]
    if not ratios:
        return ""
    low, high = (f"{value:.0f}" if value >= 10 else f"{value:.2f}" for value in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


# --- Reductions and spectra -------------------------------------------------------------------------------------------


def reductions(records: Records) -> str:
    """Return microseconds of a minimum and of sums by each method, by number of elements."""
    titles = {
        "minimum one by one, one core": "one core",
        "minimum one by one, one GPU thread": "one GPU thread",
        "minimum by cupy": "CuPy's `min`",
        "minimum by butterfly": "`butterfly_reduction`, minimum",
        "argmin by butterfly": "argmin",
        "sum by butterfly": "sum",
    }
    return _by_elements(records, titles, "float32")


def blocks(records: Records) -> str:
    """Return microseconds of the sums of blocks by butterfly, as published and by shuffles."""
    titles = {
        f"sums of blocks of {threads} by butterfly, {way}": f"blocks of {threads}, {way}"
        for threads in ("256", "1,024")
        for way in ("two barriers a step", "shuffles and one barrier")
    }
    return _by_elements(records, titles, "int32")


def _by_elements(records: Records, titles: dict[str, str], dtype: str) -> str:
    found: dict[int, dict[str, float]] = {}
    for record in records:
        title, _, rest = record["case"].rpartition(", 2^")
        if title in titles and rest.endswith(dtype):
            found.setdefault(record["sizes"]["n"], {})[title] = record["seconds"]["median"] * 1e6
    return _by_power(found, "elements", {title: f"{name}, us" for title, name in titles.items()})


def _by_power(found: dict[int, dict[str, float]], what: str, titles: dict[str, str]) -> str:
    """Return a row for each power of two, and a column for each title that has values."""
    titles = {title: name for title, name in titles.items() if any(title in values for values in found.values())}
    rows = [
        [_power(n), *(_digits(values[title]) if title in values else "" for title in titles)]
        for n, values in found.items()
    ]
    return _markdown([what, *titles.values()], rows, 0)


def searches(records: Records) -> str:
    """Return milliseconds of Dijkstra's algorithm with each way to find the next vertices, by graph."""
    titles = {
        "textbook, minimum one by one, one core": "textbook, one core",
        "textbook, minimum one by one": "textbook, one thread looks",
        "textbook, minimum by butterfly": "textbook, butterfly",
        "gpuops.dijkstra by rounds": "`gpuops.dijkstra`, rounds",
        "gpuops.dijkstra by heap, one core": "heap, one core",
    }
    found: dict[int, dict[str, float]] = {}
    for record in records:
        title, _, _ = record["case"].partition(", RMat(")
        if title in titles:
            found.setdefault(record["sizes"]["n"], {})[title] = record["seconds"]["median"] * 1e3
    return _by_power(found, "vertices", {title: f"{name}, ms" for title, name in titles.items()})


def orders(records: Records) -> str:
    """Return the fitted times of cyclic spectra of n masses."""
    rows = []
    for way, (coefficients, error) in spectra(records).items():
        rows.append([way, formula(coefficients, ORDERS[way]), f"{error:.0%}"])
    return _markdown(["", "time", "largest relative error"], rows, 2)


# --- Hierarchies by commands ------------------------------------------------------------------------------------------


def commands(records: Records) -> str:
    """Return seconds and gigabytes of each command, by road network."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for record in records:
        network, _, case = record["case"].partition(": ")
        found.setdefault(case, {})[network] = record["seconds"]["median"], record["peak_bytes"] / 1e9
    networks = list(dict.fromkeys(network for values in found.values() for network in values))
    missing = [f"`missing` {network.rpartition('-')[2]}" for network in networks]
    header = ["", *(f"{each}, {unit}" for each in missing for unit in ("s", "GB"))]
    rows = (
        [case, *(_digits(number) for network in networks for number in values[network])]
        for case, values in found.items()
    )
    return _markdown(header, rows)


# --- Functions of NetworkX --------------------------------------------------------------------------------------------


def networkx(records: Records) -> str:
    """Return CPU seconds of functions, computed by NetworkX and by the backend, by number of nodes."""
    found: dict[str, dict[tuple[int, str], str]] = {}
    for record in records:
        seconds = record["cpu_seconds"]["median"]
        way = record["sizes"]["n"], record["way"].partition(",")[0]
        found.setdefault(record["function"], {})[way] = _digits(seconds) if seconds >= 0.0005 else "< 0.001"
    sizes = sorted({n for values in found.values() for n, _ in values})
    rows = []
    for name, values in found.items():
        function, _, weights = name.partition(" ")
        cells = (" / ".join(values.get((n, way), "-") for way in ("NetworkX", "backend")) for n in sizes)
        rows.append([f"`{function}`{', ' * bool(weights)}{weights}", *cells])
    return _markdown(("NetworkX / backend", *(f"{n:,} nodes" for n in sizes)), rows)


# --- Functions of SciPy -----------------------------------------------------------------------------------------------


def csgraph(records: Records) -> str:
    """Return the times of SciPy and of tilepath.csgraph, by function and number of vertices."""
    titles = {
        "Floyd-Warshall": "`floyd_warshall`",
        "all sources, Dijkstra": "`dijkstra`, all sources",
        "all sources, Bellman-Ford": "`bellman_ford`, all sources",
        "one source, Dijkstra": "`dijkstra`, one source",
    }
    found: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        _, case, who = record["case"].split(": ")
        found.setdefault((case, record["sizes"]["n"]), {})[who] = record["seconds"]["median"]
    sizes = sorted({n for _, n in found})
    rows = []
    for case, title in titles.items():
        pairs = (found.get((case, n)) for n in sizes)
        rows.append([title, *(" / ".join(map(_time, map(pair.get, WHO))) if pair else "-" for pair in pairs)])
    return _markdown(("SciPy / tilepath", *(f"{n:,} vertices" for n in sizes)), rows)


def one_search(records: Records) -> str:
    """Return the times of one search, of a layout and of a search after it, and from which search a layout pays."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for record in records:
        who, _, graph = record["case"].rpartition(" dijkstra, ")
        found.setdefault(graph, {})[who] = record
    rows = []
    for graph, by in found.items():
        layout, after = by[""]["layout_seconds"], by[""]["seconds"]["median"]
        scipy, call = (by[who]["seconds"]["median"] for who in ("SciPy", "csgraph"))
        searches = next(n for n in itertools.count(1) if layout + n * after < n * min(scipy, call))
        name = re.sub(r"RMat\(scale=(\d+).*", r"R-MAT \1", re.sub(r"Grid\(rows=(\d+).*", r"grid of \1 x \1", graph))
        rows.append([name, *map(_time, (scipy, call, layout, after)), f"{searches}"])
    return _markdown(("graph", "SciPy", "`csgraph`", "layout", "each search", "pays from search"), rows)


def _time(seconds: float) -> str:
    return f"{_digits(seconds)} s" if seconds >= 1 else f"{_digits(seconds * 1e3)} ms"


TABLES: dict[str, Callable[[Records], str]] = {
    "sssp-rates": sssp_rates,
    "sssp-race": sssp_race,
    "fw-table-1": fw_table_1,
    "fw-variants": fw_variants,
    "fw-ratios": fw_ratios,
    "reductions": reductions,
    "blocks": blocks,
    "searches": searches,
    "orders": orders,
    "commands": commands,
    "networkx": networkx,
    "csgraph": csgraph,
    "one-search": one_search,
    "model": scaling_table.model,
    "constants": scaling_table.constants,
    "measured": scaling_table.measured,
    "epochs": scaling_table.epochs,
}


def main(pages: Iterable[Path] = PAGES) -> None:
    for page in pages:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
