"""The second table of the suite fw-table, from seconds and facts made up here."""

from benchmarks.kernels.generations import GENERATIONS, PROGRAMS
from benchmarks.suites import fw_table


def test_kernels_beside_the_papers():
    named = [generation for generation in GENERATIONS if generation.kernel]
    assert all(generation.kernel[0] in PROGRAMS[generation.name].entries for generation in named)
    facts = {g.name: {"registers": 40, "shared_bytes": 1024, "blocks_per_multiprocessor": 16} for g in named}
    seconds = {g.name: {1024: 0.5, 4096: 2.0} for g in GENERATIONS}
    rows = fw_table._kernels(seconds, facts).splitlines()[-len(named) :]
    assert rows[0] == "| Harish & Narayanan | 4,096 | 34.36 (2.6) | 16 | 549.8 (42) | 40 | 1,024 | 16 | 4.8 |"
    assert rows[-1].endswith("| 34.36 (73.6) | 0.5 | 17.18 (46) | 40 | 1,024 (1056) | 16 (15) |  |")


def test_records_have_bytes():
    ways = {generation.name: generation for generation in GENERATIONS}
    traffic = fw_table._traffic(ways["staged_load"], 2000, [0.5, 1.0, 2.0])
    assert traffic == {"bytes_per_task": 0.5, "bytes_per_second": 4e9}
    assert fw_table._traffic(ways["cpu"], 2000, [1.0]) == {}
