"""Several numbers at a time: the one SIMD type of the kernels, and hints to fetch memory early.

LLVM vectorises a loop over K labels in strides of 16, so for K around 10 every label is left to its scalar
remainder (measured: 14 instead of 4 ns per edge and label in belief propagation). It also keeps no sums in
registers across a loop over features inside a loop over points (55 to 75 % of the time of the best
auto-vectorised loop, 10 to 50 features, AVX2). Kernels written with these types are vectorised on any
machine: LLVM splits the lanes where registers are shorter.

A *vector* holds 32 bytes, ``WIDTH`` float64 or 8 float32. A *panel* is four vectors side by side, so that
four independent sums hide the latency of an addition. Both support ``+ - * /`` with their like. A *tile* is a
tuple of ``TILE`` x ``TILE`` vectors, the sums of outer products. ``array`` is contiguous and seen as flat,
``index`` counts its elements, and nothing is bounds-checked. All functions but ``padded`` can be called
inside kernels only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

#: ``numba.extending.intrinsic``, typed so that kernels may call what it decorates.
instruction: Callable[..., Any] = extending.intrinsic

#: float64 numbers in a vector.
WIDTH = 4
_VECTOR_BYTES = 8 * WIDTH
_PANEL_BYTES = 4 * _VECTOR_BYTES
_CACHE_LINE = 64  # bytes
#: Flags of a * b + c: it may become one fused instruction. The operators are strict.
FUSED = ("contract", "nsz")
_INDEX = ir.IntType(32)


class Lanes(types.Type):
    """``count`` numbers of type ``scalar`` in registers."""

    def __init__(self, scalar: Any, count: int) -> None:
        self.scalar = scalar
        self.count = count
        super().__init__(name=f"Lanes({scalar}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        scalar = ir.DoubleType() if lanes.scalar == types.float64 else ir.FloatType()
        super().__init__(manager, lanes, ir.VectorType(scalar, lanes.count))


_DOUBLES = Lanes(types.float64, WIDTH)


def _vector_of(array: Any) -> Lanes:
    return Lanes(array.dtype, _VECTOR_BYTES * 8 // array.dtype.bitwidth)


def _panel_of(array: Any) -> Lanes:
    return Lanes(array.dtype, _PANEL_BYTES * 8 // array.dtype.bitwidth)


def padded(n_labels: int) -> int:
    """Row length that holds ``n_labels`` float64 in whole vectors."""
    return -(-n_labels // WIDTH) * WIDTH


def address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to element ``index`` of an array seen as flat."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def load_lanes(context: Any, builder: Any, lanes: Lanes, pointer: Any) -> Any:
    """Read lanes from an address that is aligned for one number."""
    pointer = builder.bitcast(pointer, context.get_value_type(lanes).as_pointer())
    return builder.load(pointer, align=lanes.scalar.bitwidth // 8)


def store_lanes(builder: Any, lanes: Lanes, value: Any, pointer: Any) -> None:
    """Write lanes to an address that is aligned for one number."""
    pointer = builder.bitcast(pointer, value.type.as_pointer())
    builder.store(value, pointer, align=lanes.scalar.bitwidth // 8)


def _spread(builder: Any, kind: Any, number: Any) -> Any:
    """The same number in every lane."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INDEX, 0))
    mask = ir.Constant(ir.VectorType(_INDEX, kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, undefined, mask)


def _size(name: str, lanes_of: Callable[[Any], Lanes]) -> Callable[..., Any]:
    @instruction
    def size(typing_context: Any, array: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.get_constant(types.intp, lanes_of(array).count)

        return types.intp(array), codegen

    size.__doc__ = f"size(array): number of elements of ``array`` in a {name}."
    return size


def _load(doc: str, lanes_of: Callable[[Any], Lanes]) -> Callable[..., Any]:
    @instruction
    def load_from(typing_context: Any, array: Any, index: Any) -> Any:
        lanes = lanes_of(array)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return load_lanes(context, builder, lanes, address(context, builder, array, *args))

        return lanes(array, types.intp), codegen

    load_from.__doc__ = doc
    return load_from


vector_size = _size("vector", _vector_of)
panel_size = _size("panel", _panel_of)
load = _load("load(array, index): the vector of the elements from ``index`` on.", _vector_of)
load_panel = _load("load_panel(array, index): the panel of the elements from ``index`` on.", _panel_of)


@instruction
def broadcast_panel(typing_context: Any, array: Any, index: Any) -> Any:
    """broadcast_panel(array, index): a panel with one element in every lane."""
    lanes = _panel_of(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = builder.load(address(context, builder, array, *args))
        return _spread(builder, context.get_value_type(lanes), number)

    return lanes(array, types.intp), codegen


@instruction
def load_double(typing_context: Any, array: Any, index: Any) -> Any:
    """load_double(array, index): ``WIDTH`` elements of a float64 or float32 array as float64."""
    lanes = Lanes(array.dtype, WIDTH)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = load_lanes(context, builder, lanes, address(context, builder, array, *args))
        return value if lanes == _DOUBLES else builder.fpext(value, context.get_value_type(_DOUBLES))

    return _DOUBLES(array, types.intp), codegen


@instruction
def store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """store(array, index, lanes): write the lanes to the elements from ``index`` on, in the array's type."""
    stored = Lanes(array.dtype, lanes.count)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = args[2] if stored == lanes else builder.fptrunc(args[2], context.get_value_type(stored))
        store_lanes(builder, stored, value, address(context, builder, array, *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@instruction
def splat(typing_context: Any, number: Any) -> Any:
    """splat(number): a vector of float64 with the number in every lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, context.get_value_type(_DOUBLES), args[0])

    return _DOUBLES(types.float64), codegen


@instruction
def splat_panel(typing_context: Any, array: Any, number: Any) -> Any:
    """splat_panel(array, number): a panel of the type of ``array`` with the number in every lane."""
    lanes = _panel_of(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = context.cast(builder, args[1], types.float64, array.dtype)
        return _spread(builder, context.get_value_type(lanes), number)

    return lanes(array, types.float64), codegen


def _define(symbol: Callable[..., Any], name: str) -> None:
    """Teach numba an operator between two values of one type of lanes."""

    @type_callable(symbol)
    def typed(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            return left if isinstance(left, Lanes) and left == right else None

        return typer

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


def fused(builder: Any, left: Any, right: Any, addend: Any) -> Any:
    """Left * right + addend, in one instruction where the machine has it."""
    return builder.fadd(builder.fmul(left, right, flags=FUSED), addend, flags=FUSED)


@instruction
def multiply_add(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    """multiply_add(left, right, addend): left * right + addend, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return fused(builder, *args)

    return left(left, left, left), codegen


@instruction
def select_below(typing_context: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """Lane by lane: ``then`` where left < right, else ``otherwise`` (also where either is NaN)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return left(left, left, left, left), codegen


@instruction
def any_above(typing_context: Any, left: Any, right: Any) -> Any:
    """Whether left > right in some lane; NaN is above nothing."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.IntType(left.count)
        above = builder.bitcast(builder.fcmp_ordered(">", args[0], args[1]), bits)
        return builder.icmp_unsigned("!=", above, ir.Constant(bits, 0))

    return types.boolean(left, left), codegen


def _choice(order: str) -> Callable[..., Any]:
    return lambda builder, x, y: builder.select(builder.fcmp_ordered(order, x, y), x, y)


def _chosen(order: str, doc: str) -> Callable[..., Any]:
    choose = _choice(order)

    @instruction
    def chosen(typing_context: Any, value: Any, current: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return choose(builder, *args)

        return value(value, value), codegen

    chosen.__doc__ = doc
    return chosen


larger = _chosen(">", "Lane by lane the larger one; ``current`` where ``value`` is NaN.")
smaller = _chosen("<", "Lane by lane the smaller one; ``current`` where ``value`` is NaN.")


def reduce_lanes(context: Any, builder: Any, lanes: Lanes, value: Any, combine: Callable[..., Any]) -> Any:
    """Combine upper and lower half of the lanes, as float64, until one number is left."""
    count = lanes.count
    if lanes.scalar != types.float64:
        value = builder.fpext(value, ir.VectorType(ir.DoubleType(), count))
    while count > 1:
        count //= 2
        mask = ir.VectorType(_INDEX, count)
        lower = builder.shuffle_vector(value, value, ir.Constant(mask, list(range(count))))
        upper = builder.shuffle_vector(value, value, ir.Constant(mask, list(range(count, 2 * count))))
        value = combine(builder, lower, upper)
    return builder.extract_element(value, ir.Constant(_INDEX, 0))


def add_lanes(builder: Any, x: Any, y: Any) -> Any:
    """X + y: what ``reduce_lanes`` needs for a sum."""
    return builder.fadd(x, y)


def _reduced(combine: Callable[..., Any], doc: str) -> Callable[..., Any]:
    @instruction
    def reduced(typing_context: Any, lanes: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return reduce_lanes(context, builder, lanes, args[0], combine)

        return types.float64(lanes), codegen

    reduced.__doc__ = doc
    return reduced


lane_sum = _reduced(add_lanes, "lane_sum(lanes): the sum of the lanes, added in float64.")
lane_max = _reduced(_choice(">"), "lane_max(lanes): the largest lane.")
lane_min = _reduced(_choice("<"), "lane_min(lanes): the smallest lane.")


#: Rows of a tile.
TILE = 3


def _pack(context: Any, builder: Any, lanes: Lanes, values: list[Any]) -> Any:
    return context.make_tuple(builder, types.UniTuple(lanes, len(values)), values)


def _row_indices(builder: Any, index: Any, stride: Any) -> list[Any]:
    indices = [index]
    while len(indices) < TILE:
        indices.append(builder.add(indices[-1], stride))
    return indices


@instruction
def load_rows(typing_context: Any, array: Any, index: Any, stride: Any) -> Any:
    """load_rows(array, index, stride): a tuple of ``TILE`` vectors, ``stride`` elements apart."""
    lanes = _vector_of(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [address(context, builder, array, args[0], at) for at in _row_indices(builder, *args[1:])]
        return _pack(context, builder, lanes, [load_lanes(context, builder, lanes, at) for at in pointers])

    return types.UniTuple(lanes, TILE)(array, types.intp, types.intp), codegen


@instruction
def broadcast_rows(typing_context: Any, array: Any, index: Any) -> Any:
    """broadcast_rows(array, index): ``TILE`` vectors, each with one of the elements from ``index`` on."""
    lanes = _vector_of(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, one = context.get_value_type(lanes), context.get_constant(types.intp, 1)
        pointers = [
            address(context, builder, array, args[0], at) for at in _row_indices(builder, args[1], one)
        ]
        return _pack(context, builder, lanes, [_spread(builder, kind, builder.load(at)) for at in pointers])

    return types.UniTuple(lanes, TILE)(array, types.intp), codegen


@instruction
def store_rows(typing_context: Any, array: Any, index: Any, stride: Any, rows: Any) -> Any:
    """store_rows(array, index, stride, rows): write the vectors, ``stride`` elements apart."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        indices = _row_indices(builder, *args[1:3])
        for at, value in zip(indices, cgutils.unpack_tuple(builder, args[3]), strict=True):
            store_lanes(builder, rows.dtype, value, address(context, builder, array, args[0], at))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, rows), codegen


@instruction
def subtract_rows(typing_context: Any, left: Any, right: Any) -> Any:
    """subtract_rows(left, right): the differences of two tuples of vectors."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(*(cgutils.unpack_tuple(builder, rows) for rows in args), strict=True)
        return _pack(context, builder, left.dtype, [builder.fsub(x, y) for x, y in pairs])

    return left(left, left), codegen


@instruction
def scale_rows(typing_context: Any, rows: Any, weights: Any) -> Any:
    """scale_rows(rows, weights): every vector of the tuple times one vector."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = cgutils.unpack_tuple(builder, args[0])
        return _pack(context, builder, weights, [builder.fmul(x, args[1]) for x in vectors])

    return rows(rows, weights), codegen


@instruction
def zero_tile(typing_context: Any, array: Any) -> Any:
    """zero_tile(array): ``TILE`` x ``TILE`` vectors of zeros of the type of ``array``."""
    lanes = _vector_of(array)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(context.get_value_type(lanes), [0.0] * lanes.count)
        return _pack(context, builder, lanes, [zero] * TILE**2)

    return types.UniTuple(lanes, TILE**2)(array), codegen


def _outer(doc: str, upper: bool) -> Callable[..., Any]:
    @instruction
    def outer(typing_context: Any, tile: Any, left: Any, right: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            sums, x, y = (cgutils.unpack_tuple(builder, value) for value in args)
            for i in range(TILE):
                for j in range(i if upper else 0, TILE):
                    sums[TILE * i + j] = fused(builder, x[i], y[j], sums[TILE * i + j])
            return _pack(context, builder, left.dtype, sums)

        return tile(tile, left, right), codegen

    outer.__doc__ = doc
    return outer


add_outer = _outer("add_outer(tile, left, right): tile[i, j] + left[i] * right[j].", upper=False)
add_upper_outer = _outer("add_upper_outer(tile, left, right): the same for i <= j only.", upper=True)


@instruction
def add_tile_sums(typing_context: Any, array: Any, index: Any, stride: Any, tile: Any) -> Any:
    """add_tile_sums(array, index, stride, tile): add lane sums to float64 rows, ``stride`` apart."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = cgutils.unpack_tuple(builder, args[3])
        for i, row in enumerate(_row_indices(builder, *args[1:3])):
            for j in range(TILE):
                at = builder.add(row, context.get_constant(types.intp, j))
                pointer = address(context, builder, array, args[0], at)
                total = reduce_lanes(context, builder, tile.dtype, values[TILE * i + j], add_lanes)
                builder.store(builder.fadd(builder.load(pointer), total), pointer)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, tile), codegen


@instruction
def peek(typing_context: Any, array: Any, index: Any) -> Any:
    """peek(array, index): one element, without numba's test for an index that counts from the end."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(address(context, builder, array, *args))

    return array.dtype(array, types.intp), codegen


@instruction
def poke(typing_context: Any, array: Any, index: Any, number: Any) -> Any:
    """poke(array, index, number): write one element in the array's type."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.cast(builder, args[2], number, array.dtype)
        builder.store(value, address(context, builder, array, *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, number), codegen


def _fetch(builder: Any, pointer: Any) -> None:
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    read, keep_close, is_data = ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)
    call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    builder.call(call, [builder.bitcast(pointer, byte), read, keep_close, is_data])


@instruction
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the cache line of element ``index`` ahead of its use; changes no result."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _fetch(builder, address(context, builder, array, *args))
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@instruction
def hint(typing_context: Any, array: Any, start: Any, stop: Any) -> Any:
    """Fetch the cache lines of ``array[start:stop]`` ahead of their use; changes no result."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        step = context.get_constant(types.intp, _CACHE_LINE * 8 // array.dtype.bitwidth)
        with cgutils.for_range_slice(builder, args[1], args[2], step, args[1].type) as (index, _):
            _fetch(builder, address(context, builder, array, args[0], index))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), codegen
