"""Protocol and metaData actions, kept as they were written so that unknown fields survive (PROTOCOL.md, "Actions")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from boathouse.delta.schema import check_mapping, parse_schema, without_mapping
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.types import Schema
from boathouse.types.data_types import children

LISTS_READER: Final = 3
LISTS_WRITER: Final = 7
"""The versions that name their features in lists."""
MAPPING_MODE: Final = "delta.columnMapping.mode"
"""The property that says how columns are found in files: by `name`, which includes physical names, or by `id`."""


@dataclass(frozen=True)
class Protocol:
    """The features that readers and writers must support."""

    min_reader: int
    min_writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    @classmethod
    def parse(cls, raw: Mapping[str, Any], where: str) -> Protocol:
        reader, writer = (_version(raw, key, where) for key in ("minReaderVersion", "minWriterVersion"))
        found = cls(reader, writer, _names(raw, "readerFeatures", where), _names(raw, "writerFeatures", where), raw)
        if contradiction := found._contradiction():
            raise CorruptTableError(f"the protocol action contradicts itself: {contradiction}", where=where)
        return found

    @property
    def has_no_lists(self) -> bool:
        """Whether the versions promise lists of features that are not there, as an older draft had it."""
        absent = self.raw.get("readerFeatures") is None and self.raw.get("writerFeatures") is None
        return absent and self.min_reader == LISTS_READER and self.min_writer == LISTS_WRITER

    def _contradiction(self) -> str | None:
        """Empty lists count as none: checkpoints of others have them beside older versions."""
        if self.reader_features and self.min_reader < LISTS_READER:
            return f"it has readerFeatures, but minReaderVersion {self.min_reader}"
        if self.writer_features and self.min_writer < LISTS_WRITER:
            return f"it has writerFeatures, but minWriterVersion {self.min_writer}"
        if self.min_reader == LISTS_READER and self.min_writer < LISTS_WRITER:
            return f"it has minReaderVersion 3, but minWriterVersion {self.min_writer}"
        if alone := [n for n in self.reader_features if n not in self.writer_features]:
            return f"readerFeatures has {', '.join(alone)}, which writerFeatures lacks"
        return None


@dataclass(frozen=True)
class Metadata:
    """The metaData action `raw`; an edit copies it completely and changes keys.

    `mappable`: the protocol supports column mapping. Otherwise its property means nothing.
    """

    raw: Mapping[str, Any] = field(hash=False)
    where: str = ""
    mappable: bool = True

    @classmethod
    def parse(cls, raw: Mapping[str, Any], where: str, mappable: bool = True) -> Metadata:
        """Raises CorruptTableError, and UnsupportedFeatureError for files that are not Parquet."""
        for key, kind in (("id", str), ("format", Mapping), ("schemaString", str), ("partitionColumns", list | tuple)):
            if not isinstance(raw.get(key), kind):
                raise CorruptTableError(f"the metaData action has no {key}", where=where)
        if "configuration" not in raw:  # old writers left null
            raise CorruptTableError("the metaData action has no configuration", where=where)
        if not isinstance(raw["configuration"] or {}, Mapping):
            raise CorruptTableError("the configuration of the metaData action is not a map", where=where)
        provider = raw["format"].get("provider")
        if not isinstance(provider, str):
            raise CorruptTableError("the format of the metaData action has no provider", where=where)
        if provider.lower() != "parquet":
            raise UnsupportedFeatureError(f"the data files are {provider}: only Parquet is supported", where=where)
        found = cls(dict(raw), where, mappable)
        found._check_columns(_names(raw, "partitionColumns", where))
        return found

    def _check_columns(self, partition: tuple[str, ...]) -> None:
        names = self.schema.names
        if missing := [c for c in partition if c not in names]:
            raise CorruptTableError(f"partition columns {missing} are not in the schema", where=self.where)
        if len(set(partition)) < len(partition):
            raise CorruptTableError(f"a partition column is named twice: {list(partition)}", where=self.where)
        for name in partition:
            if children(type := self.schema.field(name).type):
                raise CorruptTableError(f"the partition column `{name}` is {type}", where=self.where)
        if self.column_mapping != "none":
            check_mapping(self.schema, self.column_mapping == "id", self.where)

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
        """`none`, `name` or `id`. Raises CorruptTableError for any other value."""
        mode = self.configuration.get(MAPPING_MODE, "none").lower()
        if mode not in ("none", "name", "id"):
            raise CorruptTableError(f"{MAPPING_MODE} is {mode!r}", where=self.where)
        return mode if self.mappable else "none"

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.configuration.get(key)
        return default if value is None else value.strip().lower() == "true"

    def number(self, key: str, default: int) -> int:
        try:
            return int(self.configuration[key])
        except (KeyError, ValueError):
            return default


def _names(raw: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of strings; absent or null is empty."""
    found = raw.get(key) or []
    if not isinstance(found, list | tuple) or not all(isinstance(n, str) for n in found):
        raise CorruptTableError(f"{key} is not a list of names: {found!r}", where=where)
    return tuple(found)


def _version(raw: Mapping[str, Any], key: str, where: str) -> int:
    found = raw.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise CorruptTableError(f"the protocol action has no {key}", where=where)
    return found


def text_of(value: object) -> str:
    """A property's value as Delta stores it: always a string, booleans in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """Without nulls and empty maps, which a checkpoint has where an entry has nothing."""
    within = {k: plain(v) if isinstance(v, Mapping) else v for k, v in action.items()}
    return {k: v for k, v in within.items() if v not in (None, {})}
