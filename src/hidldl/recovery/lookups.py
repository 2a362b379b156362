"""Compiled look-ups of rows: weighted sums of other rows, by vector instructions and with prefetched memory.

The compiler does not vectorise loops over a few labels, so the instructions are written out here. It must know the
number of labels, which is why functions take ``labels``: a tuple of that length, whose content does not matter.
"""

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from hidldl.compiling import compiled

LANES = (4, 2, 1)
"""Numbers per vector instruction: as many fours as fit, then a two, then a one."""
CACHE_LINE = 64
"""Bytes that come from memory together."""


@compiled
def collect(graph, D, begin, count, labels, d, slope):
    """A tile's rows of D, and of the graph's matrix times D, label by label."""
    indptr, indices, weights = graph
    m = len(labels)
    row = new_row(D, labels)
    sums = numba.carray(row, m)
    for r in range(count):
        for j in range(m):
            sums[j] = 0
        for entry in range(indptr[begin + r], indptr[begin + r + 1]):
            add_scaled(row, weights[entry], D, indices[entry], labels)
        for j in range(m):
            slope[j, r] = sums[j]
            d[j, r] = D[begin + r, j]


@compiled
def fetch(graph, D, begin, end):
    """Prefetch the rows of D that these rows look up."""
    indptr, indices, _ = graph
    m, line = D.shape[1], CACHE_LINE // D.itemsize
    for entry in range(indptr[begin], indptr[end]):
        for j in range(0, m - line, line):
            prefetch(D, indices[entry], j)
        prefetch(D, indices[entry], m - 1)


@intrinsic
def new_row(typing_context, D, labels):
    """Room for a row in the processor's registers, or at least on the stack."""

    def generate(context, builder, signature, arguments):
        return cgutils.alloca_once(builder, context.get_value_type(D.dtype), size=labels.count)

    return types.CPointer(D.dtype)(D, labels), generate


@intrinsic
def add_scaled(typing_context, row, weight, D, i, labels):
    """row += weight * D[i]"""

    def generate(context, builder, signature, arguments):
        total, factor, table, position, _ = arguments
        first = _address(context, builder, signature.args[2], table, position, context.get_constant(types.intp, 0))
        number = context.get_value_type(D.dtype)
        start = 0
        for lanes in LANES:
            kind = ir.VectorType(number, lanes)
            factors = ir.Constant(kind, ir.Undefined)
            for lane in range(lanes):
                factors = builder.insert_element(factors, factor, ir.Constant(ir.IntType(32), lane))
            while labels.count - start >= lanes:
                at = [
                    builder.bitcast(builder.gep(base, [ir.Constant(ir.IntType(64), start)]), kind.as_pointer())
                    for base in (total, first)
                ]
                sums, values = (builder.load(address, align=D.dtype.bitwidth // 8) for address in at)
                product = builder.fmul(factors, values, flags=("contract",))
                builder.store(builder.fadd(sums, product, flags=("contract",)), at[0], align=D.dtype.bitwidth // 8)
                start += lanes
        return context.get_dummy_value()

    return types.void(row, D.dtype, D, types.intp, labels), generate


@intrinsic
def prefetch(typing_context, D, i, j):
    """Load the cache line of D[i, j] without waiting for it."""

    def generate(context, builder, signature, arguments):
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        to_read, second_level, data = (ir.Constant(word, value) for value in (0, 2, 1))
        builder.call(function, [address, to_read, second_level, data])
        return context.get_dummy_value()

    return types.void(D, types.intp, types.intp), generate


def _address(context, builder, kind, table, i, j):
    return cgutils.get_item_pointer(context, builder, kind, make_array(kind)(context, builder, table), [i, j])
