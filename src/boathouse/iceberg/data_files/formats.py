"""The format of data files and of delete files, and how they are written, as the table's properties say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.table.units import AVRO, ORC, PARQUET
from boathouse.types import Schema, VariantType

FORMAT: Final = "write.format.default"
DELETE_FORMAT: Final = "write.delete.format.default"
FORMATS: Final = {"parquet": PARQUET, "orc": ORC, "avro": AVRO}
"""The numbers of FILES, from 0."""
SHRED: Final = "write.parquet.shred-variants"
_AVRO_CODECS: Final = {"uncompressed": "null", "gzip": "deflate", "zstd": "zstandard", "snappy": "snappy"}
_ORC_CODECS: Final = {"none": "uncompressed", "snappy": "snappy", "zlib": "zlib", "lz4": "lz4", "zstd": "zstd"}
_PARQUET_CODECS: Final = {"uncompressed": "none", "lz4_raw": "lz4"}

Options = dict[str, Any]


def data_format(properties: Mapping[str, str], where: str) -> str:
    """The format of data files. Raises UnsupportedFeatureError."""
    return _format(FORMAT, properties.get(FORMAT, "parquet"), "data files", where)


def delete_format(properties: Mapping[str, str], where: str) -> str:
    """The format of files of positions and of keys: where nothing is said, that of data files. Raises
    UnsupportedFeatureError."""
    asked = properties.get(DELETE_FORMAT)
    if asked is None:
        return data_format(properties, where)
    return _format(DELETE_FORMAT, asked, "delete files", where)


def _format(name: str, asked: str, what: str, where: str) -> str:
    if asked.lower() not in FORMATS:
        raise UnsupportedFeatureError(
            f"the table's {what} are written as {asked.lower()}, which is not offered",
            where=where,
            advice=f"set the property {name} to parquet, orc or avro",
        )
    return asked.lower()


def check_types(format: str, schema: Schema, where: str) -> None:
    """Raises UnsupportedFeatureError for variants in ORC, which the reference cannot read."""
    if format != "orc":
        return
    for path, field in schema.walk():
        if isinstance(field.type, VariantType):
            raise UnsupportedFeatureError(
                f"variants in ORC files, as of `{'.'.join(path)}`, are not offered",
                where=where,
                advice=f"set the property {FORMAT} to parquet or avro",
            )


def format_names(files: pa.Table) -> pa.Array:
    """The formats of written files (OUTCOMES), as manifests name them."""
    names = pa.array([name.upper() for name in FORMATS])
    return names.take(files.column("format").combine_chunks().cast(pa.int64()))


def file_options(format: str, properties: Mapping[str, str], *, deletes: bool = False) -> Options:
    """How files of this format are written, as plain values, the format among them; for delete files what is said of
    them goes before what is said of data files. Raises InvalidArgumentError."""
    found = _READ[format](properties, f"write.{format}.")
    if deletes:
        found |= _READ[format](properties, f"write.delete.{format}.")
    elif format == "parquet" and properties.get(SHRED, "false").lower() == "true":
        found["shred"] = True
    return {**found, "format": FORMATS[format]}


def _parquet(properties: Mapping[str, str], prefix: str) -> Options:
    found: Options = {}
    codec = properties.get(f"{prefix}compression-codec")
    if codec is not None:
        found["compression"] = _PARQUET_CODECS.get(codec.lower(), codec.lower())
    found |= _level(properties, prefix, "compression_level")
    group = properties.get(f"{prefix}row-group-size-bytes")
    if group is not None:
        found["row_group_bytes"] = number(f"{prefix}row-group-size-bytes", group)
    return found


def _orc(properties: Mapping[str, str], prefix: str) -> Options:
    found = _codec(properties, prefix, _ORC_CODECS)
    strategy = properties.get(f"{prefix}compression-strategy")
    if strategy is not None:
        found["strategy"] = strategy.lower()
    stripe = properties.get(f"{prefix}stripe-size-bytes")
    if stripe is not None:
        found["stripe_bytes"] = number(f"{prefix}stripe-size-bytes", stripe)
    return found


def _avro(properties: Mapping[str, str], prefix: str) -> Options:
    return _codec(properties, prefix, _AVRO_CODECS) | _level(properties, prefix, "level")


_READ: Final[Mapping[str, Callable[[Mapping[str, str], str], Options]]] = {
    "parquet": _parquet, "orc": _orc, "avro": _avro,
}  # fmt: skip


def _codec(properties: Mapping[str, str], prefix: str, known: Mapping[str, str]) -> Options:
    name = f"{prefix}compression-codec"
    asked = properties.get(name)
    if asked is None:
        return {}
    if asked.lower() not in known:
        raise InvalidArgumentError(f"table property {name} is {asked!r}", advice=f"use one of {', '.join(known)}")
    return {"compression": known[asked.lower()]}


def _level(properties: Mapping[str, str], prefix: str, key: str) -> Options:
    level = properties.get(f"{prefix}compression-level")
    return {} if level in (None, "", "null") else {key: number(f"{prefix}compression-level", level)}


def number(name: str, value: object) -> int:
    """The number that a property is. Raises InvalidArgumentError."""
    try:
        return int(str(value))
    except ValueError:
        raise InvalidArgumentError(f"table property {name} is {value!r}, which is not a number") from None
