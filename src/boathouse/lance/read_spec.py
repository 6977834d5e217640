"""How units of a version are read, whatever chooses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.lance.file.fields import SchemaMessage
from boathouse.lance.lineage.stored import FIELD_IDS
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.options import NATIVE, NativeRead
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.metadata_columns import ROW_ID, ROW_VERSION
from boathouse.table.tasks import ReadColumn, ReadSpec, version_words
from boathouse.types import INT64, Schema

LINEAGE: Final = {ROW_ID: FIELD_IDS["row_ids"], ROW_VERSION: FIELD_IDS["updated"]}
"""The metadata columns of tables with stable row ids, and the reserved fields that they are read as."""


def read_spec(
    snapshot: LanceSnapshot, columns: Sequence[str] | None, where: Expr | None, hidden: Sequence[str]
) -> ReadSpec:
    """Columns by field id, including those of `where`."""
    schema = snapshot.schema
    output = tuple(schema.field(name).name for name in columns) if columns is not None else schema.names
    filtered = [schema.field(path[0]).name for path in columns_of(where)] if where is not None else []
    stored = [name for name in hidden if name in LINEAGE]
    lineage = (ReadColumn(f"\0{name}", INT64, False, None, LINEAGE[name]) for name in stored)
    overlays = any(f.overlays for f in snapshot.manifest.fragments)
    return ReadSpec(
        format="lance",
        files=data_files(snapshot.stores),
        columns=(*_read_columns(schema, (*output, *filtered)), *lineage),
        stored={name: f"\0{name}" for name in stored},
        output=output,
        hidden=tuple(hidden),
        where=where,
        native=NativeRead(SchemaMessage(fields=snapshot.manifest.fields).encode(), where, overlays),
        version=version_words(snapshot.version, snapshot.location.uri),
    )


def _read_columns(schema: Schema, names: Iterable[str]) -> tuple[ReadColumn, ...]:
    fields = (schema.field(name) for name in dict.fromkeys(names))
    return tuple(ReadColumn(f.name, f.type, f.nullable, (f.name,), f.id, doc=f.doc) for f in fields)


def fragments_of(units: pa.Table) -> list[DataFragment]:
    """The fragments as the manifest has them."""
    return [DataFragment.decode(raw) for raw in units.column("native").combine_chunks().field("fragment").to_pylist()]


def with_native(
    units: pa.Table, fragments: Sequence[DataFragment], ranges: Sequence[bytes | None] | None = None
) -> pa.Table:
    """The units with these fragments, which are in the same order, and the rows of each that may satisfy the condition
    (None: any)."""
    rows = ranges if ranges is not None else [None] * len(fragments)
    native = pa.array([{"fragment": f.encode(), "rows": r} for f, r in zip(fragments, rows)], NATIVE)
    return with_column(units, "native", native)


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """The table with other values of a column."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)
