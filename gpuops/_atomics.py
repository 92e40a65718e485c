"""Atomic operations on elements of NumPy arrays, for compiled functions that several threads run at the same time.

Numba offers atomic operations for GPUs only. `store`, `add` and `exchange` publish: whatever a thread wrote before them
is seen by every thread that has read the new value by `load`, `add` or `exchange`. `prefetch` is another
instruction that Numba does not offer, and `sleep` a function of the system.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    if isinstance(signature.args[0], types.CPointer):
        return builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.intp)])
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [index], wraparound=False)


def _value(context: Any, builder: Any, signature: Any, args: Any, place: int) -> Any:
    return context.cast(builder, args[place], signature.args[place], signature.args[0].dtype)


@intrinsic
def elements(typing_context: Any, array: Any) -> Any:
    """Return a pointer to the first element of a contiguous array: ``pointer[i]`` is an element, for i from 0 on.

    Code with pointers compiles faster than code with arrays, which handles negative indices and counts references. The
    array must live as long as the pointer is used. All functions here take pointers, too. Elements may not be bool.
    """
    if array.layout != "C":
        raise errors.TypingError(f"a contiguous array is needed, not {array}")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), build


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return ``array[index]``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args)
        return builder.load_atomic(pointer, "acquire", array.dtype.bitwidth // 8)

    return array.dtype(array, index), build


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args)
        stored = _value(context, builder, signature, args, 2)
        builder.store_atomic(stored, pointer, "release", array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, value), build


@intrinsic
def add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to ``array[index]``, an integer, and return its value before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args)
        return builder.atomic_rmw("add", pointer, _value(context, builder, signature, args, 2), "acq_rel")

    return array.dtype(array, index, value), build


@intrinsic
def lower(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Set ``array[index]`` to the minimum of itself and the value; return its value before.

    Floats must not be negative: then their bits have the same order. This orders no other reads and writes.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.IntType(array.dtype.bitwidth)
        pointer = builder.bitcast(_pointer(context, builder, signature, args), bits.as_pointer())
        value = _value(context, builder, signature, args, 2)
        before = builder.atomic_rmw("min", pointer, builder.bitcast(value, bits), "monotonic")
        return builder.bitcast(before, value.type)

    return array.dtype(array, index, value), build


@intrinsic
def exchange(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Set ``array[index]``, an integer, if it is as expected; return whether it was."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args)
        before, after = (_value(context, builder, signature, args, place) for place in (2, 3))
        return builder.extract_value(builder.cmpxchg(pointer, before, after, "acq_rel", "acquire"), 1)

    return types.boolean(array, index, expected, value), build


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Begin to load ``array[index]`` into the caches. Any index is allowed; nothing is read beyond the array."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.bitcast(_pointer(context, builder, signature, args), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, index), build


@intrinsic
def rolled(typing_context: Any) -> Any:
    """Do nothing. LLVM does not unroll the loop around this call: a loop unrolled takes far longer to compile."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(nothing, [])
        return context.get_dummy_value()

    return types.void(), build


# sleep(microseconds): let other threads run for a while.
sleep = types.ExternalFunction("usleep", types.int32(types.uint32))
