"""A folder of Parquet files without a table: which files it has, and the partition values in the names of folders."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NoReturn
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import registry
from boathouse.arrow.cast import cast
from boathouse.bits.names import Names
from boathouse.bits.zones import Zone
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.storage import ObjectInfo, Storage
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.types import (
    STRING,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    Schema,
    StringType,
    TimestampType,
)

HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_REQUESTS: Final = 16
"""Listings at a time: they wait for the store."""
_STREAMED: Final = "_spark_metadata"
"""Spark's streams list in this folder which of the files beside it count."""
_TYPES: Final = (
    BooleanType, IntegerType, FloatType, DecimalType, StringType, BinaryType, DateType, TimestampType,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundFile:
    """`path` is raw and relative to the folder, `uri` is where it is; `values` are the strings of the partitions that
    its path names, None null."""

    path: str
    uri: str
    info: ObjectInfo
    values: Mapping[str, str | None]


def found_files(context: TableContext, partitions: Schema) -> list[FoundFile]:
    """The files in the folder and below, by path, without hidden ones and those in hidden folders: whose names begin
    with `_` or `.`, unless it is that of a partition column.

    Raises UnsupportedFeatureError for another table below and for the output of a
    stream, InvalidArgumentError for a folder name that cannot be read.
    """
    storage, root = context.stores.resolve(context.location.uri)
    marks = frozenset(m for n in registry.FORMATS if (m := registry.signs(n).mark) is not None)
    names, found = Names(partitions.names), []
    level = [root]
    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
        while level:
            inside: list[str] = []
            for folder, (folders, files) in zip(level, pool.map(storage.list_dir, level), strict=True):
                _check_folder(context, storage, folder, folders, marks)
                inside += [f for f in folders if not _hidden(f.rpartition("/")[2], names)]
                found += [f for f in files if not f.key.rpartition("/")[2].startswith((".", "_"))]
            level = inside
    start = len(root) + 1 if root else 0
    return [file_at(info, start, storage) for info in sorted(found, key=lambda f: f.key)]


def _hidden(name: str, partitions: Names) -> bool:
    if not name.startswith((".", "_")):
        return False
    column, sign, _ = name.partition("=")
    return not sign or not partitions.at(unquote(column))


def _check_folder(
    context: TableContext, storage: Storage, folder: str, inside: Sequence[str], marks: frozenset[str]
) -> None:
    names = {f.rpartition("/")[2] for f in inside}
    if _STREAMED in names:
        raise UnsupportedFeatureError(
            f"a Spark stream wrote these files: {_STREAMED} lists those that count",
            where=storage.uri(folder),
            advice="read the folder with Spark and write the rows to a table",
        )
    if names & marks:
        location = Location(storage.uri(folder))
        for name in registry.FORMATS:
            if registry.signs(name).mark in names and registry.load(name).detect(
                TableContext(location, context.stores)
            ):
                raise UnsupportedFeatureError(
                    f"{registry.signs(name).title} is in this folder, and not all of its files are current",
                    where=location.uri,
                    advice="move it elsewhere, or convert the folders beside it one by one",
                )


def file_at(info: ObjectInfo, start: int, storage: Storage) -> FoundFile:
    """A file, whose path begins at this place of its key. Raises InvalidArgumentError for a folder name that cannot be
    read."""
    path, uri = info.key[start:], storage.uri(info.key)
    return FoundFile(path, uri, info, folder_values(path.rpartition("/")[0], uri))


def folder_values(folders: str, where: str) -> dict[str, str | None]:
    """What the names of these folders say: `year=2024/month=1`. Raises InvalidArgumentError."""
    values: dict[str, str | None] = {}
    for folder in folders.split("/"):
        name, sign, text = folder.partition("=")
        if not sign or not name:
            continue
        try:
            name, value = unquote(name, errors="strict"), unquote(text, errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"the folder name {folder!r} is not percent-encoded UTF-8", where=where, advice="rename the folder"
            ) from error
        if name in values:
            raise InvalidArgumentError(f"the path has `{name}` twice", where=where)
        values[name] = None if text == HIVE_NULL or value == "" else value
    return values


def partition_arrays(
    files: Sequence[FoundFile], partitions: Schema, zone: Zone | None, advice: str | None = None
) -> list[pa.Array]:
    """The value of each partition column for each file, by Spark's CAST; `zone` is that of timestamps without one.

    Raises InvalidArgumentError if the folders' names are not those of the columns, or a value is not of its type.
    """
    for f in partitions:
        if not isinstance(f.type, _TYPES):
            raise InvalidArgumentError(f"`{f.name}` of type {f.type} cannot be read from the name of a folder")
    strings = [_strings(f, partitions) for f in files]
    return [_typed([t[i] for t in strings], f, files, zone, advice) for i, f in enumerate(partitions)]


def _strings(file: FoundFile, partitions: Schema) -> list[str | None]:
    names = Names(file.values)
    places = [names.at(f.name) for f in partitions]
    if len(file.values) != len(partitions) or any(len(at) != 1 for at in places):
        _refuse_names(file, partitions)
    values = list(file.values.values())
    return [values[at[0]] for at in places]


def _refuse_names(file: FoundFile, partitions: Schema) -> NoReturn:
    found = ", ".join(f"`{n}`" for n in file.values) or "none"
    named = ", ".join(f"`{n}`" for n in partitions.names) or "none"
    advice = "leave partition_by out"
    if file.values:
        advice = (
            f"pass for example partition_by={', '.join(f'{quote(n)} {_guess(t)}' for n, t in file.values.items())!r}"
        )
    raise InvalidArgumentError(
        f"the folders of this file name the partition columns {found}; partition_by names {named}",
        where=file.uri,
        advice=advice,
    )


def _guess(text: str | None) -> str:
    if text is not None and text.lstrip("-").isdecimal():
        return "int" if len(text) < 10 else "bigint"
    try:
        dt.date.fromisoformat(text or "")
    except ValueError:
        return "string"
    return "date"


def _typed(
    strings: Sequence[str | None], field: Field, files: Sequence[FoundFile], zone: Zone | None, advice: str | None
) -> pa.Array:
    given = pa.array(strings, pa.string())
    if isinstance(field.type, BinaryType):
        return given.cast(pa.binary())
    coded = given.dictionary_encode()
    values = cast(coded.dictionary, STRING, field.type, safe=True, zone=zone)
    found = values.take(coded.indices)
    bad = pc.and_(pc.is_null(found), pc.is_valid(given))
    if pc.any(bad).as_py():
        at = bad.to_pylist().index(True)
        raise InvalidArgumentError(
            f"{strings[at]!r} in the path of this file is not a {field.type}, which `{field.name}` is",
            where=files[at].uri,
            advice=advice or f"pass another type in partition_by, such as `{field.name} string`",
        )
    return found
