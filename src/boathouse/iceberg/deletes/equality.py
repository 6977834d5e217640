"""Equality delete files of a plan: their key columns, and the units that their bounds cannot exclude."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.data_files.reading import READERS
from boathouse.iceberg.deletes.index import Place, Units
from boathouse.iceberg.manifests.batches import FORMATS
from boathouse.iceberg.manifests.records import map_of
from boathouse.iceberg.manifests.values import arrow_array, decode
from boathouse.iceberg.snapshot import IcebergSnapshot

METRICS = frozenset({"lower_bounds", "upper_bounds", "null_value_counts"})
_ORDERED = (T.IntegerType, T.DateType, T.TimestampType, T.DecimalType, T.StringType, T.BinaryType)
"""Key types whose bounds exclude files. Bounds of floats say nothing about NaN, which equals NaN."""


@dataclass(frozen=True, slots=True)
class EqualityFile:
    """One delete file: `keys` are field ids; of each, as recorded, the bounds and how many are null."""

    uri: str
    format: int
    place: Place
    keys: tuple[int, ...]
    rows: int
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    nulls: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any], uri: str, place: Place) -> EqualityFile:
        """Raises CorruptTableError, UnsupportedFeatureError."""
        keys = tuple(dict.fromkeys(data.get("equality_ids") or ()))
        if not keys or None in keys:
            raise CorruptTableError("the entry of an equality delete file has no equality_ids", where=uri)
        metrics = (map_of(data, name) or {} for name in ("lower_bounds", "upper_bounds", "null_value_counts"))
        return cls(uri, delete_format(data, uri), place, keys, data["record_count"], *metrics)


def delete_format(data: Mapping[str, Any], where: str) -> int:
    """The format of an entry's delete file. Raises CorruptTableError, UnsupportedFeatureError."""
    name = str(data["file_format"]).upper()
    found = FORMATS.get(name)
    if found is None:
        raise CorruptTableError(f"{name!r:.80} is not a format of Iceberg delete files", where=where)
    if found not in READERS:
        raise UnsupportedFeatureError(f"{name} delete files are not offered", where=where)
    return found


def key_field(snapshot: IcebergSnapshot, id: int, where: str) -> tuple[tuple[str, ...], T.Field]:
    """The path and the field of a key column: of the snapshot's schema, or of the newest that had it before it was
    dropped. Raises CorruptTableError, UnsupportedFeatureError."""
    schemas = snapshot.metadata.schemas
    for schema in (snapshot.schema, *(schemas[i] for i in sorted(schemas, reverse=True))):
        found = _below((), schema.fields, id)
        if found is not None:
            if isinstance(found[1].type, T.StructType | T.ListType | T.MapType | T.VariantType):
                raise CorruptTableError(f"the equality key `{'.'.join(found[0])}` is not primitive", where=where)
            return found
    raise UnsupportedFeatureError(
        f"equality deletes by field {id}, which no schema in the table's metadata has", where=where
    )


def _below(above: tuple[str, ...], fields: Iterable[T.Field], id: int) -> tuple[tuple[str, ...], T.Field] | None:
    """The field with this id, through structs only."""
    for f in fields:
        if f.id == id:
            return (*above, f.name), f
        if isinstance(f.type, T.StructType) and (found := _below((*above, f.name), f.type.fields, id)) is not None:
            return found
    return None


@dataclass(frozen=True, slots=True)
class KeyStats:
    """S of the waist for key columns, by field id, a row for each unit."""

    fields: Mapping[int, T.Field]
    stats: Mapping[int, pa.StructArray]

    @classmethod
    def of(cls, schema: T.Schema, files: pa.Table, paths: Sequence[str], ids: Sequence[int]) -> KeyStats:
        """From FILES with the statistics of these columns, for the units with these paths."""
        places = {path: i for i, path in enumerate(files.column("path").to_pylist())}
        rows = pa.array([places[path] for path in paths], pa.int64())
        stats = files.column("stats").combine_chunks().take(rows)
        fields = {f.id: f for f in schema if f.id is not None and f.id in ids}
        return cls(fields, {id: stats.field(str(i)) for i, id in enumerate(ids)})


def ordered_keys(schema: T.Schema, files: Iterable[EqualityFile]) -> list[T.Field]:
    """The columns of the schema that are keys and whose bounds exclude files."""
    wanted = {id for f in files for id in f.keys if id in f.lower and id in f.upper}
    return [f for f in schema if f.id in wanted and isinstance(f.type, _ORDERED)]


def applies_to(file: EqualityFile, units: Units, known: KeyStats | None) -> list[int]:
    """The units that have rows which the file may delete: older ones of its partition, or of all, whose bounds of some
    key do not exclude all of its keys."""
    older = units.older(file.place)
    for id in file.keys if known is not None and older.any() else ():
        if known is not None and id in known.stats:
            older &= ~_excluded(file, known.fields[id], known.stats[id])
    found: list[int] = np.flatnonzero(older).tolist()
    return found


def _excluded(file: EqualityFile, key: T.Field, stats: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Where the key's values are all below or all above those of the file, and not null on both sides."""
    id = -1 if key.id is None else key.id
    bounds = arrow_array([decode(file.lower.get(id), key.type), decode(file.upper.get(id), key.type)], key.type)
    apart = pc.or_kleene(pc.less(stats.field("upper"), bounds[0]), pc.greater(stats.field("lower"), bounds[1]))
    found: npt.NDArray[np.bool_] = pc.fill_null(apart, False).to_numpy(zero_copy_only=False)
    if file.nulls.get(id) != 0:
        found &= pc.fill_null(pc.equal(stats.field("nulls"), 0), False).to_numpy(zero_copy_only=False)
    return found
