"""A hint to the processor to fetch a cache line before it is needed.

Sweeps over a graph without locality wait for memory at every neighbour; the neighbours of the nodes to
come are known, so their rows can be on the way already. It changes no result.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types

__all__ = ["prefetch"]

# numba's decorator changes the signature (it supplies the typing context), which mypy cannot see.
intrinsic: Any = extending.intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the cache line of element ``index`` of a contiguous array, seen as flat, for reading."""
    signature = types.void(array, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        read, keep_close, is_data = ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)
        builder.call(hint, [builder.bitcast(builder.gep(data, [args[1]]), byte), read, keep_close, is_data])
        return context.get_dummy_value()

    return signature, codegen
