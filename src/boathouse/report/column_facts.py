"""What the statistics of a table's files say of its columns, and how well they tell the files apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.table.inspection import leaves
from boathouse.table.snapshot import Snapshot

COLUMNS: Final = 200
"""So many columns are looked at,"""
FILES: Final = 100_000
"""in so many files."""
ORDERED: Final = 40
"""Of so many columns the bounds of all these files are compared."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column, or field of a struct, of a simple type.

    `covered` is the share of the files whose bounds are recorded (or that have nulls alone), None without a file.
    `nulls` are counted in all files, or unknown. `read` is the share of the files that a condition `column = value`
    has to read, for a value that is the lower bound of some file; None where bounds cannot be compared.
    """

    name: str
    type: str
    nullable: bool
    covered: float | None = None
    nulls: int | None = None
    lower: Any = None
    upper: Any = None
    read: float | None = None


def column_facts(snapshot: Snapshot) -> tuple[ColumnFacts, ...]:
    """The first 200 columns, in the order of the schema."""
    order = {f.name: i for i, f in enumerate(snapshot.schema)}
    found = sorted(leaves(snapshot), key=lambda leaf: order[leaf[0][0]])[:COLUMNS]
    stats = _stats(snapshot, [path for path, _ in found])
    facts = []
    for i, (path, field) in enumerate(found):
        plain = ColumnFacts(".".join(path), str(field.type), field.nullable)
        facts.append(plain if stats is None else _of(plain, stats.field(i), compare=i < ORDERED))
    return tuple(facts)


def _stats(snapshot: Snapshot, paths: Sequence[tuple[str, ...]]) -> pa.StructArray | None:
    """`stats` of FILES, of the first files; None without any."""
    batches, seen = [], 0
    for batch in snapshot.files(paths):
        batches.append(batch.column("stats"))
        seen += batch.num_rows
        if seen >= FILES:
            break
    if not seen or not paths:
        return None
    return pa.chunked_array(batches).combine_chunks()


def _of(plain: ColumnFacts, stats: pa.StructArray, compare: bool) -> ColumnFacts:
    lower, upper, nulls, values = (_child(stats, n) for n in ("lower", "upper", "nulls", "values"))
    empty = pc.fill_null(pc.equal(nulls, values), False)
    bounded = pc.and_(lower.is_valid(), upper.is_valid())
    known = pc.or_(bounded, empty).to_numpy(zero_copy_only=False)
    total = None if nulls.null_count else pc.sum(nulls).as_py()
    least = greatest = read = None
    if compare or len(stats) == 1:
        least, greatest = _extreme(lower, "min"), _extreme(upper, "max")
        read = _read(lower.filter(bounded), upper.filter(bounded), len(stats), len(stats) - int(known.sum()))
    return ColumnFacts(plain.name, plain.type, plain.nullable, float(known.mean()), total, least, greatest, read)


def _child(stats: pa.StructArray, name: str) -> pa.Array:
    return pc.struct_field(stats, name)  # unlike StructArray.field, null where the struct is


def _extreme(bounds: pa.Array, which: str) -> Any:
    try:
        return pc.min_max(bounds)[which].as_py()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, ValueError, OverflowError):
        return None  # a type without an order in Arrow, or a value that Python has not


def _read(lower: pa.Array, upper: pa.Array, files: int, unknown: int) -> float | None:
    """`ColumnFacts.read`: files without bounds are always read."""
    count = len(lower)
    if not count:
        return None
    try:
        ranks = pc.rank(pa.concat_arrays([lower, upper]), tiebreaker="dense").to_numpy()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    low, high = ranks[:count], ranks[count:]
    begun = np.searchsorted(np.sort(low), low, side="right")
    ended = np.searchsorted(np.sort(high), low, side="left")
    return float((begun - ended + unknown).mean() / files)
