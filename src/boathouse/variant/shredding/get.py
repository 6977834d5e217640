"""Reads paths directly from shredded columns: nothing is rebuilt that the path does not reach.

At each step of a path the value is either in the typed column that the step leads into, or in the residual `value`,
never in both (VariantShredding.md, "Objects"): a shredded field is searched only in its own columns, an element of a
shredded array only in its list. So a file that violates this (an INVALID row of the specification's table) can give
other results than its rebuilt values would; the specification allows that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.layouts import is_list_view, plain_list
from boathouse.arrow.schema import from_arrow_type, to_arrow_type
from boathouse.arrow.vector import only_where
from boathouse.bits.unaligned import Mask
from boathouse.errors import InvalidArgumentError
from boathouse.types import BooleanType, DataType, DecimalType, FloatType, IntegerType, StringType, VariantType
from boathouse.variant.cast import resolve_type
from boathouse.variant.columns import layout
from boathouse.variant.columns.extract import extract
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.path import as_path
from boathouse.variant.primitives import EMPTY_METADATA
from boathouse.variant.shredding.masks import both, valid
from boathouse.variant.shredding.plans import joined
from boathouse.variant.shredding.primitives import plain
from boathouse.variant.shredding.rows import Rows
from boathouse.variant.shredding.schema import ShreddingSchema, group_schema
from boathouse.variant.shredding.unshred import CONFLICT, check_metadata, children_of, plan_pair, variants

Path = str | Sequence[str | int]


def get(
    shredded: Any,
    path: Path,
    type: DataType | pa.DataType | str = "variant",
    *,
    safe: bool = False,
    lenient: Lenient | None = None,
) -> pa.Array | pa.ChunkedArray:
    """The same as `variant.extract(unshred(shredded), path, type, safe=, lenient=)`, from the columns that the path
    needs.

    `shredded` is struct<metadata, value?, typed_value?>; it may lack the leaves that `parquet.variants.variant_parts`
    does not name.
    Null are null rows, missing values, and variant null where `type` is not variant. A cast that fails raises
    EvaluationError, with `safe` it gives null. Raises ExpressionError for a path that does not parse, and
    MalformedVariant as `unshred` does, for the columns that are read.
    """
    steps = as_path(path)
    wanted = resolve_type(from_arrow_type(type) if isinstance(type, pa.DataType) else type)
    arrow = type if isinstance(type, pa.DataType) else None
    if isinstance(shredded, pa.ChunkedArray):
        parts, first = [], 0
        for chunk in shredded.chunks:
            parts.append(_Reader(chunk, wanted, arrow, safe, lenient, first).run(steps))
            first += len(chunk)
        if parts:
            return pa.chunked_array(parts)
        return pa.chunked_array([_Reader(pa.nulls(0, shredded.type), wanted, arrow, safe, None, 0).run(steps)])
    if not isinstance(shredded, pa.Array):
        raise InvalidArgumentError(f"a shredded column is an Arrow array, not {shredded.__class__.__name__}")
    return _Reader(shredded, wanted, arrow, safe, lenient, 0).run(steps)


@dataclass(frozen=True, eq=False)
class _Reader:
    array: pa.Array
    type: DataType
    arrow: pa.DataType | None
    safe: bool
    lenient: Lenient | None
    first_row: int

    def run(self, steps: Sequence[str | int]) -> pa.Array:
        found = self._run(steps)
        return found if self.arrow is None or found.type == self.arrow else found.cast(self.arrow)

    @cached_property
    def storage(self) -> pa.StructArray:
        array = self.array
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        return array

    @cached_property
    def metadata(self) -> pa.Array:
        at = self.storage.type.get_field_index("metadata")
        if at < 0:
            # Primitives only, which need no names: see `parquet.variants.variant_parts`.
            return pa.repeat(pa.scalar(EMPTY_METADATA, pa.binary()), len(self.array))
        return self.storage.field(at)

    def _run(self, steps: Sequence[str | int]) -> pa.Array:
        group = children_of(self.storage)
        group.pop("metadata", None)
        mask = valid(self.storage)
        required = True
        for number, step in enumerate(steps):
            below = _member(group.get("typed_value"), step)
            if below is None:
                return self._residual(group.get("value"), mask, steps[number:])
            child, there = below
            mask = both(mask, there)
            group, required = children_of(child), isinstance(step, int)
        return self._found(group, mask, required)

    def _residual(self, value: pa.Array | None, mask: Mask | None, steps: Any) -> pa.Array:
        """The path below values that are not shredded further."""
        if value is None:
            return pa.nulls(len(self.array), to_arrow_type(self.type))
        mask = both(mask, valid(value))
        null = None if mask is None else pa.array(~mask)
        column = pa.StructArray.from_arrays([self.metadata, value], ["metadata", "value"], mask=null)
        return self._extract(column, steps)

    def _extract(self, column: pa.Array, steps: Sequence[str | int]) -> pa.Array:
        if not len(column):
            return pa.array([], to_arrow_type(self.type))
        numbered = replace(layout.column(column), first_row=self.first_row)
        found = extract(numbered, tuple(steps), self.type, safe=self.safe, lenient=self.lenient)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _found(self, group: dict[str, pa.Array], mask: Mask | None, required: bool) -> pa.Array:
        """The values of one pair of columns, of which nothing else is read."""
        if not group:
            return pa.nulls(len(self.array), to_arrow_type(self.type))
        schema = group_schema(group)
        if isinstance(schema.typed, DataType):
            made = self._straight(plain(group["typed_value"]), schema.typed)
            if made is not None:
                return self._coalesced(group, mask, made)
        column = self._whole(group, schema, mask, required)
        return column if isinstance(self.type, VariantType) else self._extract(column, ())

    def _straight(self, typed: pa.Array, held: DataType) -> pa.Array | None:
        """The typed column as the requested type, where that is certain to equal the cast of the variant."""
        wanted = self.type
        target = to_arrow_type(wanted)
        if held == wanted:
            return typed if typed.type == target else typed.cast(target)
        match held, wanted:
            case (IntegerType(a, True), IntegerType(b, True)):
                return typed.cast(target) if a < b or _within(typed, b) else None
            case (FloatType(32), FloatType(64)) | (IntegerType(_, True) | BooleanType(), StringType()):
                return typed.cast(target)
            case (DecimalType(p, s), DecimalType(q, r)) if s == r and p <= q:
                return typed.cast(target)
        return None

    def _coalesced(self, group: dict[str, pa.Array], mask: Mask | None, typed: pa.Array) -> pa.Array:
        value = group.get("value")
        if value is not None and value.null_count < len(value):
            has = valid(value)
            conflict = both(both(valid(typed), has), mask)
            rows, count = self._rows(), len(typed)
            rows.refuse(np.ones(count, np.bool_) if conflict is None else conflict, np.arange(count), CONFLICT)
            mask = self._settled(rows, mask)
            residual = self._residual(value, mask, ())
            return residual if has is None else pc.if_else(pa.array(has), residual, _masked(typed, mask))
        return _masked(typed, mask)

    def _rows(self) -> Rows:
        return Rows(layout._dictionaries(self.metadata)[0], self.lenient, self.first_row)

    def _whole(
        self, group: dict[str, pa.Array], schema: ShreddingSchema, mask: Mask | None, required: bool
    ) -> pa.StructArray:
        """The pair's values as variants; null where there is none."""
        rows, count = self._rows(), len(self.array)
        check_metadata(rows, mask)
        plan = plan_pair(rows, schema, group, np.arange(count), mask, required)
        there = both(mask, plan.mask)
        if isinstance(plan.size, int) and not plan.size:
            there = np.zeros(count, np.bool_)
        return variants(self.metadata, joined(plan, count), self._settled(rows, there))

    def _settled(self, rows: Rows, mask: Mask | None) -> Mask | None:
        """The mask without the rows found malformed, which are counted."""
        if rows.bad is None or self.lenient is None:
            return mask
        self.lenient.add(np.flatnonzero(rows.bad) + self.first_row)
        return both(mask, ~rows.bad)


def _within(typed: pa.Array, bits: int) -> bool:
    """Whether all numbers fit a narrower integer."""
    found = pc.min_max(typed)
    low, high = found["min"].as_py(), found["max"].as_py()
    return low is None or bool(low >= -(1 << bits - 1) and high < 1 << bits - 1)


def _masked(array: pa.Array, mask: Mask | None) -> pa.Array:
    """Null outside the mask."""
    if mask is None or mask.all():
        return array
    if not (~mask & _valid(array)).any():
        return array
    return only_where(pa.array(mask), array)


def _valid(array: pa.Array) -> Mask:
    found = valid(array)
    return np.ones(len(array), np.bool_) if found is None else found


def _member(typed: pa.Array | None, step: str | int) -> tuple[pa.StructArray, Mask | None] | None:
    """The group that a step leads into, and the instances that have it; None if `value` holds what the step names."""
    if typed is None:
        return None
    typed = plain(typed)
    if isinstance(step, str):
        if not pa.types.is_struct(typed.type) or typed.type.get_field_index(step) < 0:
            return None
        group = typed.field(typed.type.get_field_index(step))
        return group, both(valid(typed), valid(group))
    if is_list_view(typed.type):
        typed = plain_list(typed)
    if not (pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)):
        return None
    lengths = np.asarray(pc.fill_null(pc.list_value_length(typed), 0), np.int64)
    there = lengths > step
    at = np.asarray(typed.offsets, np.int64)[:-1] + step
    return typed.values.take(pa.array(at, mask=~there)), there
