"""Every kernel that an operation may launch, compiled for every architecture, on a machine without a GPU."""

import math
import re

import pytest
from compiling import compile_log
from families import SLOW

from gpuops._cuda import GPUOPS
from gpuops.warming import all_programs

ARCHITECTURES = ["sm_90", "sm_80", "sm_100"]
PROGRAMS = all_programs()
REGISTERS = 65536  # of a multiprocessor


def programs_and_architectures():
    """By default one program of each folder for the first architecture: the host compiles all kernels, too."""
    of_folders = {program.file.split("/")[0]: program for program in PROGRAMS}
    for program in PROGRAMS:
        for architecture in [program.architecture] if program.architecture else ARCHITECTURES:
            name = "-".join((program.file, *program.macros, architecture))
            always = program in of_folders.values() and architecture == ARCHITECTURES[0]
            yield pytest.param(program, architecture, id=name, marks=[] if always else SLOW)


@pytest.mark.parametrize(("program", "architecture"), list(programs_and_architectures()))
def test_compiles_without_spilling_registers(program, architecture):
    log = compile_log(program, architecture)
    assert "warning" not in log, log
    assert "Potential Performance Loss" not in log, log  # products of warpgroups that wait for each other
    for entry in program.entries:
        report = re.search(rf"entry function '{entry}'.*?(\d+) bytes spill stores, (\d+) bytes spill loads", log, re.S)
        assert report, f"no entry {entry} in\n{log}"
        assert report.groups() == ("0", "0"), log
        used = int(re.search(rf"entry function '{entry}'.*?Used (\d+) registers", log, re.S)[1])
        in_blocks = program.blocks * program.threads * math.ceil(used / 8) * 8
        assert in_blocks <= REGISTERS, f"{program.blocks} blocks do not fit on a multiprocessor\n{log}"


def test_every_kernel_file_is_declared():
    kernels = {str(path.relative_to(GPUOPS)) for path in GPUOPS.rglob("*.cu")}
    assert kernels == {program.file for program in PROGRAMS}


def test_loops_that_wait_load_by_volatile_ptx():
    """ptxas takes `while (!__ldcg(p));` to have ended and removes it: ld.global.cg may be left out, a wait may not."""
    waits = re.compile(r"while \(.*__ld(g|cg|ca|cs|lu|cv)\(")
    for path in [*GPUOPS.rglob("*.cu*"), *(GPUOPS.parent / "benchmarks").rglob("*.cu*")]:
        for line, text in enumerate(path.read_text().splitlines(), 1):
            assert not waits.search(text), f"{path.name}:{line} waits with a load that a compiler may remove"


def test_messages_point_into_the_file_at_fault():
    program = next(program for program in PROGRAMS if program.file == "minplus/product.cu")
    lines = program.source().splitlines()
    text = (GPUOPS / "minplus/product.cu").read_text().splitlines()
    mark = max(i for i, line in enumerate(lines) if line.startswith("#line"))
    number = int(lines[mark].split()[1])
    assert lines[mark + 1 :] == text[number - 1 :]
    assert not any(line.startswith("#include") for line in lines)
