"""The fields of an Avro data file in Arrow: types by the logical types of Iceberg's appendix A, with field ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.schema import FIELD_ID
from boathouse.avro.cursors import Path, Schema
from boathouse.avro.schema import PRIMITIVES, by_names
from boathouse.errors import CorruptTableError

_PLAIN: Final = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_INTS: Final = {"date": pa.date32(), "time-millis": pa.time32("ms")}
_UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_NESTED: Final = ("record", "array", "map")
_UNREADABLE: Final = pa.dense_union([])


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type: `kind` is Avro's (or `union`, of several types besides null), `path` is where it is in the record, or in
    the item of the array or map, around it; `below` are a record's fields, or the item of an array or a map.

    `schema` is that of the present value, for decoding.
    """

    kind: str
    path: Path
    arrow: pa.DataType
    schema: Schema
    below: tuple[AvroType, ...] = ()

    def wanted(self) -> Iterator[Path]:
        """The places that decoding needs."""
        if self.kind not in ("null", "union"):
            yield self.path
        if self.kind == "record":
            for b in self.below:
                yield from b.wanted()

    @property
    def items(self) -> Schema:
        """The schema of an array's items, or of a map's entries."""
        if self.kind == "array":
            return self.schema["items"]
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": self.schema["values"]}]
        return {"type": "record", "name": "entry", "fields": fields}


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A top-level field."""

    field: pa.Field
    type: AvroType


def columns_of(schema: Any, where: str) -> tuple[Schema, list[AvroColumn]]:
    """The schema for decoding, and the columns, of a file's own schema. Raises CorruptTableError."""
    decoded = by_names(schema, where)
    if not isinstance(decoded, dict) or decoded["type"] != "record":
        raise CorruptTableError("the Avro file does not contain records", where=where)
    try:
        typer = _Typer(where)
        root = typer.resolved(schema)
        typer.define(root)
        found = [
            AvroColumn(*typer.field(raw, f["type"], (f["name"],)))
            for raw, f in zip(root["fields"], decoded["fields"], strict=True)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CorruptTableError):
            raise
        raise CorruptTableError(f"the Avro schema cannot be read: {error!r:.200}", where=where) from None
    return decoded, found


class _Typer:
    """Goes through a file's schema, of which the ids and logical types are wanted, and the one for decoding together:
    the latter is known to be sound."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.defined: dict[str, Any] = {}

    def resolved(self, raw: Any) -> Any:
        """A type without references and wrappers."""
        while True:
            if isinstance(raw, str) and raw not in PRIMITIVES:
                raw = self.defined[raw]
            elif isinstance(raw, dict) and not isinstance(raw["type"], str):
                raw = raw["type"]
            elif isinstance(raw, dict) and raw["type"] in self.defined and raw["type"] not in (*PRIMITIVES, *_NESTED):
                raw = self.defined[raw["type"]]
            else:
                return raw

    def define(self, raw: Mapping[str, Any]) -> None:
        self.defined[raw["name"]] = raw
        if raw.get("namespace"):
            self.defined[f"{raw['namespace']}.{raw['name']}"] = raw

    def field(self, raw: Mapping[str, Any], decoded: Schema, path: Path) -> tuple[pa.Field, AvroType]:
        """A field of a record."""
        type = self.type(raw["type"], decoded, path)
        return self._named(path[-1], type, raw.get("field-id")), type

    def _named(self, name: str, type: AvroType, id: Any, nullable: bool = True) -> pa.Field:
        if id is None:
            return pa.field(name, type.arrow, nullable)
        if isinstance(id, bool) or not str(id).isdecimal() or int(id) >= 1 << 31:
            raise CorruptTableError(f"the Avro schema has the field id {id!r:.80}", where=self.where)
        return pa.field(name, type.arrow, nullable, {FIELD_ID: str(int(id)).encode()})

    def type(self, raw: Any, decoded: Schema, path: Path) -> AvroType:
        raw = self.resolved(raw)
        if isinstance(decoded, list):
            # All are gone through, for what they define.
            made = [self.type(r, d, path) for r, d in zip(raw, decoded, strict=True)]
            present = [m for m in made if m.kind != "null"]
            if len(present) > 1:
                return AvroType("union", path, _UNREADABLE, decoded)
            return present[0] if present else AvroType("null", path, pa.null(), "null")
        if isinstance(decoded, str):
            return AvroType(decoded, path, _primitive(decoded, raw if isinstance(raw, dict) else {}), decoded)
        match decoded["type"]:
            case "record":
                return self._record(raw, decoded, path)
            case "array":
                return self._array(raw, decoded, path)
            case "map":
                return self._map(raw, decoded, path)
            case "fixed":
                self.define(raw)
                size = decoded["size"]
                # Uuids are fixed of 16 as well.
                arrow = _decimal(raw) or (pa.binary(size) if 0 < size < 1 << 20 else _UNREADABLE)
                return AvroType("fixed" if arrow != _UNREADABLE else "union", path, arrow, decoded)
        self.define(raw)
        return AvroType("enum", path, pa.string(), decoded)

    def _record(self, raw: Mapping[str, Any], decoded: Schema, path: Path) -> AvroType:
        self.define(raw)
        fields = [
            self.field(r, d["type"], (*path, d["name"])) for r, d in zip(raw["fields"], decoded["fields"], strict=True)
        ]
        return AvroType("record", path, pa.struct([f for f, _ in fields]), decoded, tuple(t for _, t in fields))

    def _array(self, raw: Mapping[str, Any], decoded: Schema, path: Path) -> AvroType:
        item = self.type(raw["items"], decoded["items"], ())
        if raw.get("logicalType") == "map":
            # An entry is a record: its fields are in the Arrow type, with their ids.
            names = [t.path[-1] for t in item.below]
            if item.kind != "record" or sorted(names) != ["key", "value"] or isinstance(decoded["items"], list):
                raise CorruptTableError("the Avro schema has a map whose items are not entries", where=self.where)
            key, value = (item.arrow.field(item.arrow.get_field_index(n)) for n in ("key", "value"))
            return AvroType("array", path, pa.map_(key.with_nullable(False), value), decoded, (item,))
        return AvroType("array", path, pa.list_(self._named("element", item, raw.get("element-id"))), decoded, (item,))

    def _map(self, raw: Mapping[str, Any], decoded: Schema, path: Path) -> AvroType:
        key = AvroType("string", ("key",), pa.string(), "string")
        value = self.type(raw["values"], decoded["values"], ("value",))
        fields = [self._named("key", key, raw.get("key-id"), False), self._named("value", value, raw.get("value-id"))]
        entry = AvroType("record", (), pa.struct(fields), {}, (key, value))
        return AvroType("map", path, pa.map_(*fields), decoded, (entry,))


def _primitive(name: str, raw: Mapping[str, Any]) -> pa.DataType:
    """Logical types that do not fit are ignored, as Avro says."""
    logical = raw.get("logicalType")
    if name == "int" and logical in _INTS:
        return _INTS[logical]
    if name == "long" and isinstance(logical, str):
        kind, _, unit = logical.rpartition("-")
        if kind == "time" and unit in ("micros", "nanos"):
            return pa.time64(_UNITS[unit])
        if kind in ("timestamp", "local-timestamp") and unit in _UNITS:
            utc = kind == "timestamp" and raw.get("adjust-to-utc") is True
            return pa.timestamp(_UNITS[unit], "UTC" if utc else None)
    return (_decimal(raw) if name == "bytes" else None) or _PLAIN[name]


def _decimal(raw: Mapping[str, Any]) -> pa.DataType | None:
    if raw.get("logicalType") != "decimal":
        return None
    precision, scale = raw.get("precision"), raw.get("scale", 0)
    sound = type(precision) is int and type(scale) is int and 0 <= scale <= precision and 1 <= precision <= 38
    return pa.decimal128(precision, scale) if sound else None
