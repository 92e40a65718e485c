"""The part of CuPy that gpuops uses, for a machine without a GPU: arrays are NumPy's, kernels run on the CPU (cuda.h).

What CuPy or the device would not forgive is an error here: arguments that do not have the types of the parameters,
stores beyond the ends of an array. Memory is poisoned, in fresh arrays and around all of them, so that a load of what
was never stored shows in the result.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import re
import shutil
import subprocess
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HEADER = Path(__file__).with_name("cuda.h")
COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
FLAGS = ("-O1", "-shared", "-fPIC", "-w", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off")

# Calls of -fsanitize=thread without its library: cuda.h answers them.
RACES = ("-fsanitize=thread", "-DHOST_RACES", "-fno-exceptions", "-nodefaultlibs", "-Wl,--no-as-needed,-lm,-lc")

ALIGNMENT = 512  # of CuPy's arrays
GUARD = 64 << 10  # bytes of poison before and after an array
# By turns 8 bytes that are a large negative number in every dtype and 8 of a large positive one: a minimum with the
# first shows in a result, a minimum stored over the second shows in the guard.
POISON = np.resize(np.repeat(np.array([0xFB, 0x7B], np.uint8), 8), GUARD + 1024)
STATIC_SHARED = 48 << 10  # bytes of shared memory that a kernel has without asking for more


class KernelError(RuntimeError):
    """A launch that fails on a device, or may."""


# --- The device ---------------------------------------------------------------------------------------------------


_state = SimpleNamespace(device=1000, seed=0, multiprocessors=1, flags=FLAGS, capability="90")
launched: set[tuple[str, tuple[str, ...], str]] = set()  # since `start`: code, options, entry
launches = 0


def start(seed=0, multiprocessors=1, device=None, races=False, capability="90"):
    """From here on it is another device, of which gpuops remembers nothing, and threads take turns by this seed.

    With `races`, a race in shared memory is an error, and kernels are slower.
    """
    _state.device = _state.device + 1 if device is None else device
    _state.seed, _state.multiprocessors, _state.capability = seed, multiprocessors, capability
    _state.flags = FLAGS + RACES if races else FLAGS
    launched.clear()


class Device:
    def __init__(self, id=None):
        self.id = _state.device if id is None else id

    @property
    def attributes(self):
        return {"MultiProcessorCount": _state.multiprocessors, "MaxSharedMemoryPerBlockOptin": 227 << 10}

    @property
    def compute_capability(self):
        return _state.capability

    @property
    def mem_info(self):
        return 80 << 30, 80 << 30

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class _Pinned(np.ndarray):
    @property
    def ptr(self):
        return self.ctypes.data


def _alloc_pinned(size):
    memory = np.resize(POISON, size).view(_Pinned)
    _pinned.add(memory.ptr)
    return memory


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0)


# --- Arrays -------------------------------------------------------------------------------------------------------

_pinned = set()  # addresses, which a kernel may be given as numbers
_allocated = []  # (reference to the bytes, where the array starts and ends in them)


class ndarray(np.ndarray):
    @property
    def device(self):
        return Device()

    @property
    def data(self):
        ptr = self.ctypes.data
        return SimpleNamespace(
            ptr=ptr if _is_allocated(self) else 0,
            memset_async=lambda value, size: ctypes.memset(ptr, value, size),
            copy_from_device_async=lambda other, size: ctypes.memmove(ptr, other.ptr, size),
            copy_from_host_async=lambda host, size: ctypes.memmove(ptr, host, size),
            copy_to_host_async=lambda host, size: ctypes.memmove(host, ptr, size),
        )

    def copy(self, order="C"):
        return asarray(self)

    def get(self, out=None):
        if out is None:
            return np.array(self.view(np.ndarray))
        out[...] = self.view(np.ndarray)
        return out

    def set(self, values, stream=None):
        self[...] = values

    def max(self, axis=None, out=None, keepdims=False):  # CuPy's has no `initial`
        return super().max(axis, out, keepdims)


class _Memory(ndarray):
    """What CuPy's `alloc` returns: bytes without a shape or a dtype."""

    @property
    def ptr(self):
        return self.data.ptr

    def memset_async(self, value, size):
        self.data.memset_async(value, size)


def _alloc(size):
    return empty((size,), np.uint8).view(_Memory)


def _is_allocated(array):
    """CuPy allocates nothing for an empty array; a view of a part of another array has an address."""
    return array.size > 0 or (array.base is not None and getattr(array.base, "size", 0) > 0)


def empty(shape, dtype):
    shape = (shape,) if isinstance(shape, int) else shape
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 2 * GUARD + ALIGNMENT, np.uint8)
    memory[...] = np.resize(POISON, len(memory))
    first = GUARD + -(memory.ctypes.data + GUARD) % ALIGNMENT
    _allocated.append((weakref.ref(memory), first, first + size))
    return memory[first : first + size].view(dtype).reshape(shape).view(ndarray)


def zeros(shape, dtype):
    return asarray(np.zeros(shape, dtype))


def ones(shape, dtype):
    return asarray(np.ones(shape, dtype))


def ascontiguousarray(x, dtype=None):
    kept = x.flags.c_contiguous and dtype in (None, x.dtype)
    return x if kept else asarray(np.asarray(x, dtype))


def asarray(x):
    result = empty(x.shape, x.dtype)
    result[...] = x
    return result


def arange(stop, dtype):
    return asarray(np.arange(stop, dtype=dtype))


def argsort(x, kind=None):
    return asarray(np.argsort(x, kind="stable"))


def sort(x):
    return asarray(np.sort(x))


def searchsorted(x, values, side="left"):
    return asarray(np.searchsorted(x, values, side))


def bincount(x, minlength):
    return asarray(np.bincount(x, minlength=minlength))


def cumsum(x, dtype=None, out=None):
    return asarray(np.cumsum(x, dtype=dtype, out=out))


def flatnonzero(x):
    return asarray(np.flatnonzero(x))


def concatenate(arrays, axis=0):
    return asarray(np.concatenate(arrays, axis))


def broadcast_to(x, shape):
    return asarray(np.broadcast_to(x, shape))


def may_share_memory(x, y):
    return np.may_share_memory(x, y)


def where(condition, x, y):
    return asarray(np.where(condition, x, y))


def minimum(x, y):
    return asarray(np.minimum(x, y))


def isfinite(x):
    return asarray(np.isfinite(x))


def abs(x):
    return asarray(np.abs(x))


copyto = np.copyto


lib = np.lib  # the views of lib.stride_tricks


def _check_guards(entry):
    _allocated[:] = [allocation for allocation in _allocated if allocation[0]() is not None]
    for reference, first, last in _allocated:
        before, after = reference()[:first], reference()[last:]
        if (before != POISON[:first]).any() or (after != POISON[last % 16 :][: len(after)]).any():
            raise KernelError(f"{entry} stored beyond the ends of an array")


def _thrust_argsort(dtype, order, keys, _, shape):
    """Write the stable order of keys at an address, and sort the keys, too."""
    size = shape[0]
    found = np.frombuffer((ctypes.c_char * (8 * size)).from_address(order), np.int64)
    values = np.frombuffer((ctypes.c_char * (np.dtype(dtype).itemsize * size)).from_address(keys), dtype)
    found[:] = np.argsort(values, kind="stable")
    values[:] = values[found]


cuda = SimpleNamespace(
    thrust=SimpleNamespace(argsort=_thrust_argsort),
    alloc=_alloc,
    Device=Device,
    is_available=lambda: True,
    alloc_pinned_memory=_alloc_pinned,
    get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None, wait_event=lambda event: None),
    Event=lambda disable_timing: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
)


# --- Kernels ------------------------------------------------------------------------------------------------------


_libraries: dict[str, ctypes.CDLL] = {}  # by what they were compiled from


class RawModule:
    build: Path  # the folder of the compiled programs

    def __init__(self, code, options):
        self.source = code, options
        entries = re.findall(r'extern "C" __global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(', code)
        text = f'#include "{HEADER.name}"\nnamespace {{\n{on_host(code)}\n}}\n'
        text += "".join(f"HOST_ENTRY({entry})\n" for entry in entries)
        parts = (_compiler(), text, HEADER.read_text(), *_state.flags, *options)
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        if key not in _libraries:
            _libraries[key] = ctypes.CDLL(_compile(text, options, self.build / key))
        self.library = _libraries[key]

    def get_function(self, entry):
        return RawKernel(self, entry)


class RawKernel:
    def __init__(self, module, entry):
        self.entry, self.source, self.max_dynamic_shared_size_bytes = entry, module.source, STATIC_SHARED
        self.launch, parameters = (getattr(module.library, name + entry) for name in ("launch_", "parameters_"))
        self.launch.restype = parameters.restype = ctypes.c_char_p
        self.parameters = parameters().decode("latin-1")

    @property
    def kernel(self):
        return self  # what CuPy compiles for one device

    def __call__(self, grid, block, args, shared_mem=0, *, enable_cooperative_groups=False):
        given = "".join("p8" if isinstance(x, ndarray) else x.dtype.kind + str(x.itemsize) for x in args)
        wanted = re.findall(r"[a-zV]\d+", self.parameters)
        for i, x in enumerate(args[: len(wanted)]):  # a number may be a null pointer, or an address of the host
            if wanted[i] == "p8" and not isinstance(x, ndarray) and x.itemsize == 8 and (x == 0 or int(x) in _pinned):
                wanted[i] = x.dtype.kind + "8"
        if given.replace("u", "i") != "".join(wanted).replace("u", "i"):
            raise KernelError(f"{self.entry} takes {self.parameters} and was given {given} (kind, size in bytes)")
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise KernelError(f"{self.entry} has {self.max_dynamic_shared_size_bytes} bytes of shared memory")
        values = [np.uint64(x.data.ptr) if isinstance(x, ndarray) else x for x in args]
        values = [np.atleast_1d(value) for value in values]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        shapes = [(ctypes.c_uint * 3)(*shape, *[1] * (3 - len(shape))) for shape in (grid, block)]
        error = self.launch(*shapes, ctypes.c_uint(_state.seed), pointers, ctypes.c_int(enable_cooperative_groups))
        if error:
            raise KernelError(f"{self.entry}: {error.decode()}")
        _check_guards(self.entry)
        launched.add((*self.source, self.entry))
        globals()["launches"] += 1


@functools.cache
def _compiler():
    """What the compiler says of itself, its version above all."""
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(text, options, path):
    library = path.with_suffix(".so")
    if library.exists():
        return library
    path.parent.mkdir(exist_ok=True)
    # Another process may be compiling the same.
    mine = path.with_name(f"{path.name}-{os.getpid()}")
    source, compiled = mine.with_suffix(".cc"), mine.with_suffix(".so")
    source.write_text(text)
    command = [COMPILER, *_state.flags, *options, f"-I{HEADER.parent}", "-o", compiled, source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the compiler refuses a kernel; what of CUDA it misses belongs into cuda.h\n{done.stderr}")
    os.replace(compiled, library)
    source.unlink()
    return library


# --- What the C++ compiler cannot take as it is ---------------------------------------------------------------------

_DYNAMIC_SHARED = re.compile(r"extern __shared__\s+(?:alignas\(\w+\)\s+)?(\w+)\s+(\w+)\[\];")
_ASM = re.compile(r'\basm(?:\s+volatile)?\s*\(\s*((?:"[^"]*"\s*)+)(.*?)\)\s*;', re.S)
_OPERAND = re.compile(r'"[=+&]*[a-z]"\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)')


def on_host(code):
    """`code` with PTX as calls of functions, `asm("min.s32 %0, %1, 5;" ...)` as `ptx_min_s32(x, y, 5)`."""
    code = _DYNAMIC_SHARED.sub(r"\1* const \2 = (\1*)host::dynamic_shared;", code)
    return _ASM.sub(_calls, code)


def _calls(statement):
    operands = _OPERAND.findall(statement[2])
    ptx = "".join(re.findall('"([^"]*)"', statement[1])).replace(r"\n", " ").replace(r"\t", " ")
    calls = []
    for instruction in filter(None, (part.strip(" {}") for part in ptx.split(";"))):
        name, _, arguments = instruction.partition(" ")
        name = re.sub(r"\.L2::\w+", "", name).replace("::", "_")  # without hints to the cache
        arguments = re.sub(r"[\[\]{}]", "", arguments)
        arguments = arguments.replace("%%", "")  # special registers
        arguments = re.sub(r"^_, ", "", arguments)  # a result that is not wanted
        arguments = re.sub(r"%(\d+)", lambda number: f"({operands[int(number[1])]})", arguments)
        if name == ".reg":  # a register of any type: 32 bits, which the functions reinterpret
            calls.append(f"unsigned {arguments.partition(' ')[2]};")
        else:
            calls.append(f"ptx_{name.replace('.', '_')}({arguments});")
    lines = "\n" * statement[0].count("\n")  # so that messages keep their lines
    return "{ " + " ".join(calls) + " }" + lines
