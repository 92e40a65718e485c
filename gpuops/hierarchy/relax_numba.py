"""The innermost loop of every kernel of a hierarchy, in LLVM IR with explicit vectors.

In a loop that Numba compiles, the row that is lowered stays in memory, and LLVM takes seconds to vectorize all copies
of the loop. Here four vectors of the row stay in registers while the loop passes over the rows of the table, and
compiling is fast.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpuops._vectors_numba import VECTOR_BYTES

_VECTORS = 4  # vectors of the row that are lowered together


@intrinsic
def relax(
    typing: Any, to: Any, row: Any, begin: Any, end: Any, values: Any, first: Any, step: Any, table: Any, rows: Any,
    at: Any, count: Any, most: Any,
) -> Any:  # fmt: skip
    """Lower to[row, begin:end] to the least values[first + i * step] + table[rows[at + i], begin:end] over i < count.

    With None for `rows`, the rows of the table are `at` + i. The row is lowered from its present values if `most` is
    None, else from `most`. `to` and `table` are matrices of one dtype with contiguous rows; `values` is C-contiguous,
    and indexed as if it had one dimension. Sums of integers may wrap.

    One long function: it emits one loop, whose parts share the builder and the types.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the loop. One long function, as `relax`."""
        kinds = dict(zip(("to", "values", "table", "rows"), (signature.args[i] for i in (0, 4, 7, 8)), strict=True))
        made = {
            name: context.make_array(kind)(context, builder, arguments[i])
            for (name, kind), i in zip(kinds.items(), (0, 4, 7, 8), strict=True)
            if isinstance(kind, types.Array)
        }
        scalar = kinds["to"].dtype
        is_float = isinstance(scalar, types.Float)
        element, index, bit = context.get_data_type(scalar), ir.IntType(64), ir.IntType(1)
        size = scalar.bitwidth // 8
        lanes = VECTOR_BYTES // size
        vector, mask = ir.VectorType(element, lanes), ir.VectorType(bit, lanes)
        row, begin, end, first, step, at, count = (arguments[i] for i in (1, 2, 3, 5, 6, 9, 10))

        def intrinsic_of(name: str, kind: Any) -> Any:
            return cgutils.get_or_insert_function(builder.module, kind, name)

        number = f"v{lanes}{'f' if is_float else 'i'}{8 * size}"
        pointer = vector.as_pointer()
        load_some = intrinsic_of(
            f"llvm.masked.load.{number}.p0", ir.FunctionType(vector, [pointer, ir.IntType(32), mask, vector])
        )
        store_some = intrinsic_of(
            f"llvm.masked.store.{number}.p0", ir.FunctionType(ir.VoidType(), [vector, pointer, ir.IntType(32), mask])
        )
        align = ir.IntType(32)(size)

        def spread(value: Any) -> Any:
            kind = ir.VectorType(value.type, lanes)
            one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))

        def start_of(name: str, of_row: Any, column: Any) -> Any:
            """Return the pointer to element [of_row, column] of `to` or `table`."""
            width = cgutils.unpack_tuple(builder, made[name].strides)[0]
            start = builder.add(builder.ptrtoint(made[name].data, index), builder.mul(of_row, width))
            return builder.inttoptr(builder.add(start, builder.mul(column, index(size))), pointer)

        def lower(column: Any, vectors: int, inside: Any) -> None:
            """Lower some vectors of the row, or with a mask `inside` one vector in part."""

            def load(start: Any, v: int) -> Any:
                if inside is not None:
                    return builder.call(load_some, [start, align, inside, ir.Constant(vector, ir.Undefined)])
                return builder.load(builder.gep(start, [index(v)]), align=size)

            target = start_of("to", row, column)
            before = [
                load(target, v) if signature.args[11] is types.none else spread(arguments[11]) for v in range(vectors)
            ]
            best = [cgutils.alloca_once_value(builder, value) for value in before]
            with cgutils.for_range(builder, count) as loop:
                turn = builder.add(at, loop.index)
                if "rows" in made:
                    turn = builder.sext(builder.load(builder.gep(made["rows"].data, [turn])), index)
                source = start_of("table", turn, column)
                place = builder.add(first, builder.mul(loop.index, step))
                value = spread(builder.load(builder.gep(made["values"].data, [place])))
                for v in range(vectors):
                    old, length = builder.load(best[v]), load(source, v)
                    length = builder.fadd(value, length) if is_float else builder.add(value, length)
                    less = builder.fcmp_ordered if is_float else builder.icmp_signed
                    builder.store(builder.select(less("<", length, old), length, old), best[v])
            for v in range(vectors):
                if inside is not None:
                    builder.call(store_some, [builder.load(best[v]), target, align, inside])
                else:
                    builder.store(builder.load(best[v]), builder.gep(target, [index(v)]), align=size)

        block = index(_VECTORS * lanes)
        blocks = builder.sdiv(builder.sub(end, begin), block)
        with cgutils.for_range(builder, blocks) as loop:
            lower(builder.add(begin, builder.mul(loop.index, block)), _VECTORS, None)
        rest = builder.add(begin, builder.mul(blocks, block))
        with cgutils.for_range_slice(builder, rest, end, index(lanes), index) as (column, _):
            number_of = ir.Constant(ir.VectorType(index, lanes), list(range(lanes)))
            lower(column, 1, builder.icmp_signed("<", number_of, spread(builder.sub(end, column))))
        return context.get_dummy_value()

    longs = [types.intp] * 3
    return types.void(to, *longs, values, *longs[:2], table, rows, *longs[:2], most), codegen
