"""The kernels of expr.functions.FUNCTIONS, one per name: `kernel(args, result type[, zone]) -> array`.

At least one argument is an array, all have the types that `bind` coerced them to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow import arithmetic, kernels, numbers, times
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.selection import take
from boathouse.arrow.vector import Value, as_array, per_distinct, per_row
from boathouse.bits.zones import Zone
from boathouse.compute import variants
from boathouse.errors import EvaluationError
from boathouse.types import DataType

Kernel = Callable[[list[Value], DataType], Value]
ZonedKernel = Callable[[list[Value], DataType, Zone | None], Value]
_INT_MAX = 2**31 - 1


def _rows(args: list[Value]) -> int:
    return next(len(a) for a in args if not isinstance(a, pa.Scalar))


def _arrays(args: list[Value]) -> list[pa.Array]:
    rows = _rows(args)
    return [as_array(a, rows) for a in args]


def _null(args: list[Value], type: DataType) -> pa.Array:
    return pa.nulls(_rows(args), to_arrow_type(type))


def like(value: Value, pattern: Value, escape: str, ignore_case: bool) -> Value:
    """LIKE; a pattern that ends in the escape character, or escapes an ordinary one, is an error, as in Spark."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.nulls(len(value), pa.bool_())
        matcher = _matcher(pattern.as_py(), escape, ignore_case)
        return pc.match_substring_regex(value, matcher) if matcher.isascii() else _like_rows(value, matcher)
    rows = _rows([value, pattern])
    return per_row(
        lambda v, p: re.fullmatch(_python(_matcher(p, escape, ignore_case)), v) is not None,
        [as_array(value, rows), pattern],
        pa.bool_(),
    )


def _like_rows(value: pa.Array, matcher: str) -> pa.Array:
    compiled = re.compile(_python(matcher))
    return per_distinct(lambda v: compiled.fullmatch(v) is not None, value, pa.bool_())


def _python(matcher: str) -> str:
    return matcher.replace(r"\z", r"\Z")


def _matcher(pattern: str, escape: str, ignore_case: bool) -> str:
    """The regular expression (RE2) of a LIKE pattern."""
    out = ["(?is)" if ignore_case else "(?s)", "^"]
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == escape:
            i += 1
            if i == len(pattern) or pattern[i] not in ("%", "_", escape):
                raise EvaluationError(f"the LIKE pattern {pattern!r} is malformed at its escape character")
            out.append(re.escape(pattern[i]))
        else:
            out.append({"%": ".*", "_": "."}.get(c) or re.escape(c))
        i += 1
    return "".join(out) + r"\z"


def _substring(args: list[Value], type: DataType) -> Value:
    if any(isinstance(a, pa.Scalar) and not a.is_valid for a in args):
        return _null(args, type)
    constant = isinstance(args[0], pa.Array) and all(isinstance(a, pa.Scalar) for a in args[1:])
    if constant:
        start = args[1].as_py()
        length = args[2].as_py() if len(args) > 2 else _INT_MAX
        if start >= 0:
            start = max(start - 1, 0)
            return pc.utf8_slice_codeunits(args[0], start, min(start + max(length, 0), _INT_MAX))
    return per_row(substring, _arrays(args), pa.string())


def substring(word: str, position: int, length: int = _INT_MAX) -> str:
    """SUBSTRING: positions count from 1, negative ones from the end, 0 is 1."""
    start = position - 1 if position > 0 else len(word) + position if position < 0 else 0
    return word[max(start, 0) : max(start + max(length, 0), 0)]


def _left(args: list[Value], type: DataType) -> Value:
    return _substring([args[0], pa.scalar(1, pa.int32()), args[1]], type)


def _right(args: list[Value], type: DataType) -> Value:
    return per_row(lambda w, n: w[max(len(w) - n, 0) :] if n > 0 else "", _arrays(args), pa.string())


def _case_kernel(ascii_kernel: Callable[[Value], Value], python: Callable[[str], str]) -> Kernel:
    def run(args: list[Value], type: DataType) -> Value:
        plain = pc.all(pc.string_is_ascii(args[0])).as_py() is not False
        return ascii_kernel(args[0]) if plain else per_distinct(python, args[0], pa.string())

    return run


def _concat(args: list[Value], type: DataType) -> Value:
    if len(args) == 1:
        return args[0]
    return pc.binary_join_element_wise(*args, pa.scalar("", to_arrow_type(type)), null_handling="emit_null")


def _concat_ws(args: list[Value], type: DataType) -> Value:
    columns = [a.to_pylist() for a in _arrays(args)]
    joined = [None if s is None else s.join(w for w in words if w is not None) for s, *words in zip(*columns)]
    return pa.array(joined, pa.string())


def _replace(args: list[Value], type: DataType) -> Value:
    if len(args) == 2:
        args = [*args, pa.scalar("")]
    word, search, put = args
    if isinstance(search, pa.Scalar) and isinstance(put, pa.Scalar):
        if not search.is_valid or not put.is_valid:
            return _null(args, type)
        return pc.replace_substring(word, search.as_py(), put.as_py()) if search.as_py() else word
    return per_row(lambda w, s, p: w.replace(s, p) if s else w, _arrays(args), pa.string())


def _finder(kernel: Callable[..., Value], python: Callable[[Any, Any], bool]) -> Kernel:
    def run(args: list[Value], type: DataType) -> Value:
        if isinstance(args[1], pa.Scalar):
            return kernel(args[0], args[1].as_py()) if args[1].is_valid else _null(args, type)
        return per_row(python, _arrays(args), pa.bool_())

    return run


def _length(args: list[Value], type: DataType) -> Value:
    if pa.types.is_string(args[0].type):
        return pc.utf8_length(args[0])
    return pc.binary_length(args[0]).cast(pa.int32())


def _size(args: list[Value], type: DataType) -> Value:
    array = args[0]
    if pa.types.is_null(array.type):
        return _null(args, type)
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    return pc.list_value_length(array).cast(pa.int32())


def _array(args: list[Value], type: DataType) -> Value:
    """Lists whose elements are the rows of the arguments."""
    arrow, rows, long = to_arrow_type(type), _rows(args), len(args)
    elements = pa.concat_arrays([a.cast(arrow.value_type) if a.type != arrow.value_type else a for a in _arrays(args)])
    places = (np.arange(long) * rows + np.arange(rows)[:, None]).ravel()
    offsets = pa.array(np.arange(rows + 1) * long, pa.int32())
    return pa.ListArray.from_arrays(offsets, take(elements, places), arrow)


def _named_struct(args: list[Value], type: DataType) -> Value:
    rows = _rows(args)
    values = [as_array(a, rows) for a in args[1::2]]
    fields = [f.with_type(v.type) for f, v in zip(to_arrow_type(type), values, strict=True)]
    return pa.StructArray.from_arrays(values, fields=fields)


def _pmod(args: list[Value], type: DataType) -> Value:
    left, right = _arrays(args)
    return arithmetic.pmod(left, right, type)


KERNELS: dict[str, Kernel] = {
    "greatest": lambda a, t: kernels.extreme(_arrays(a), True),
    "least": lambda a, t: kernels.extreme(_arrays(a), False),
    "isnan": lambda a, t: pc.fill_null(pc.is_nan(a[0]), False),
    "negative": lambda a, t: arithmetic.negate(a[0], t),
    "abs": lambda a, t: arithmetic.absolute(a[0], t),
    "ceil": lambda a, t: numbers.whole(a[0], t, up=True),
    "floor": lambda a, t: numbers.whole(a[0], t, up=False),
    "round": numbers.round_,
    "sign": lambda a, t: numbers.sign(a[0]),
    "sqrt": lambda a, t: pc.sqrt(a[0]),
    "power": lambda a, t: numbers.power(*_arrays(a)),
    "pmod": _pmod,
    "upper": _case_kernel(pc.ascii_upper, str.upper),
    "lower": _case_kernel(pc.ascii_lower, str.lower),
    "trim": lambda a, t: pc.utf8_trim(a[0], " "),
    "ltrim": lambda a, t: pc.utf8_ltrim(a[0], " "),
    "rtrim": lambda a, t: pc.utf8_rtrim(a[0], " "),
    "length": _length,
    "substring": _substring,
    "left": _left,
    "right": _right,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": _replace,
    "startswith": _finder(pc.starts_with, str.startswith),
    "endswith": _finder(pc.ends_with, str.endswith),
    "contains": _finder(pc.match_substring, lambda w, s: s in w),
    "array": _array,
    "named_struct": _named_struct,
    "size": _size,
    **times.KERNELS,
    **variants.KERNELS,
}

# Functions whose result may depend on a time zone; `zone` is None if it does not.
ZONED: dict[str, ZonedKernel] = {**times.ZONED, **variants.ZONED}
