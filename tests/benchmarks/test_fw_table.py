"""The tables that the suite fw-table prints after a run of one size, and the bytes of its records."""

from benchmarks import document_tables
from benchmarks.kernels.generations import GENERATIONS, PROGRAMS, VARIANTS
from benchmarks.suites import fw_table


def test_tables_of_a_run_of_one_size():
    named = [generation for generation in GENERATIONS if generation.kernel]
    assert all(generation.kernel[0] in PROGRAMS[generation.name].entries for generation in named)
    facts = {"registers": 40, "shared_bytes": 1024, "blocks_per_multiprocessor": 16, "occupancy": 0.5}
    run = {"sizes": {"n": 4096}, "seconds": {"median": 0.5}}
    records = [run | {"generation": g.name} | (facts if g.kernel else {}) for g in (*GENERATIONS, *VARIANTS)]
    times = document_tables.fw_table_1(records).splitlines()
    assert times[2] == "| 1,024 | (2.405) | (0.408) | (0.108) | (0.0428) | (0.0274) |  |"
    assert times[5] == "| 4,096 | 0.5 (145.2) | 0.5 (26.05) | 0.5 (4.62) | 0.5 (2.06) | 0.5 (0.934) | 0.5 |"
    kernels = document_tables.fw_variants(records).splitlines()
    assert kernels[-1] == "| staged load (Lund & Smith) | 40 | 1,024 (1,056) | 16 (15) | 50% | 0.5 |  |  |"


def test_records_have_bytes():
    ways = {generation.name: generation for generation in GENERATIONS}
    traffic = fw_table._traffic(ways["staged_load"], 2000, [0.5, 1.0, 2.0])
    assert traffic == {"bytes_per_task": 0.5, "bytes_per_second": 4e9}
    assert fw_table._traffic(ways["cpu"], 2000, [1.0]) == {}
