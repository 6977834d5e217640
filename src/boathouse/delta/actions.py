"""Protocol and metaData actions, kept as they were written so that unknown fields survive (PROTOCOL.md, "Actions")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from boathouse.delta.schema import parse_schema, without_mapping
from boathouse.errors import CorruptTableError
from boathouse.types import Schema


@dataclass(frozen=True)
class Protocol:
    """What a reader and a writer must know."""

    min_reader: int
    min_writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    @classmethod
    def parse(cls, raw: Mapping[str, Any], where: str) -> Protocol:
        try:
            reader, writer = int(raw["minReaderVersion"]), int(raw["minWriterVersion"])
        except (KeyError, TypeError, ValueError) as error:
            text = "the protocol action has no minReaderVersion and minWriterVersion"
            raise CorruptTableError(text, where=where) from error
        return cls(reader, writer, _names(raw, "readerFeatures", where), _names(raw, "writerFeatures", where), raw)


@dataclass(frozen=True)
class Metadata:
    """The metaData action `raw`; an edit copies it whole and changes keys."""

    raw: Mapping[str, Any] = field(hash=False)
    where: str = ""

    @classmethod
    def parse(cls, raw: Mapping[str, Any], where: str) -> Metadata:
        """Raises CorruptTableError."""
        for key, kind in (("id", str), ("schemaString", str)):
            if not isinstance(raw.get(key), kind):
                raise CorruptTableError(f"the metaData action has no {key}", where=where)
        _names(raw, "partitionColumns", where)
        if not isinstance(raw.get("configuration") or {}, Mapping):
            raise CorruptTableError("the configuration of the metaData action is no map", where=where)
        found = cls(dict(raw), where)
        names = found.schema.names
        missing = [c for c in found.partition_columns if c not in names]
        if missing:
            raise CorruptTableError(f"partition columns {missing} are not in the schema", where=where)
        return found

    @property
    def id(self) -> str:
        return self.raw["id"]

    @cached_property
    def schema(self) -> Schema:
        text = self.raw["schemaString"]
        found = parse_schema(text, self.where)
        return without_mapping(found) if self.column_mapping == "none" and "delta.columnMapping" in text else found

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.raw.get("partitionColumns") or ())

    @cached_property
    def configuration(self) -> Mapping[str, str]:
        return {
            str(k): v if isinstance(v, str) else text_of(v) for k, v in (self.raw.get("configuration") or {}).items()
        }

    @property
    def column_mapping(self) -> str:
        """`none`, `name` or `id`. Raises CorruptTableError for another word."""
        mode = self.configuration.get("delta.columnMapping.mode", "none").lower()
        if mode not in ("none", "name", "id"):
            raise CorruptTableError(f"delta.columnMapping.mode is {mode!r}", where=self.where)
        return mode

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.configuration.get(key)
        return default if value is None else value.strip().lower() == "true"

    def number(self, key: str, default: int) -> int:
        try:
            return int(self.configuration[key])
        except (KeyError, ValueError):
            return default


def _names(raw: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of texts, absent or null being empty."""
    found = raw.get(key) or []
    if not isinstance(found, list | tuple) or not all(isinstance(n, str) for n in found):
        raise CorruptTableError(f"{key} is no list of names: {found!r}", where=where)
    return tuple(found)


def text_of(value: object) -> str:
    """A property's value as Delta keeps it: always text, booleans in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
