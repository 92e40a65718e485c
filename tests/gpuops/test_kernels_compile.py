"""Every kernel that an operation may launch, compiled for every architecture, on a machine without a GPU."""

import itertools
import math
import re

import pytest
from compiling import compile_log

from gpuops._cuda import GPUOPS
from gpuops.warming import all_programs

ARCHITECTURES = ["sm_90", "sm_80", "sm_100"]
PROGRAMS = all_programs()
REGISTERS = 65536  # of a multiprocessor


def programs_and_architectures():
    """By default the last program of each file for the first architecture.

    Every sixth of the files whose text depends on the architecture is by default compiled for another one, too.
    """
    of_files = {program.file: program for program in PROGRAMS}  # programs of a file differ in macros alone
    dependent = [file for file, program in of_files.items() if "__CUDA_ARCH__" in program.source()]
    others = dict(zip(dependent[1::6], itertools.cycle(ARCHITECTURES[1:])))
    for program in PROGRAMS:
        of_file = [other for other in PROGRAMS if other.file == program.file]
        architectures = [program.architecture] if program.architecture else ARCHITECTURES
        always = (of_file[-1], architectures[0]), (of_file[0], others.get(program.file))
        for architecture in architectures:
            name = "-".join((program.file, *program.macros, architecture))
            marks = [] if (program, architecture) in always else [pytest.mark.slow]
            yield pytest.param(program, architecture, id=name, marks=marks)


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
