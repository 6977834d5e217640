"""The data of `boathouse variant`: the bytes of a file as a tree of values, and the findings about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from boathouse.errors import (
    BoathouseError,
    InvalidArgumentError,
    MalformedVariant,
    NotFoundError,
)
from boathouse.variant.cast_text import to_text
from boathouse.variant.decode import Container, read_container, value_end
from boathouse.variant.metadata import Metadata, parse_metadata, unsigned
from boathouse.variant.path import Step, format_path, parse_path
from boathouse.variant.primitives import SHORT_STRING
from boathouse.variant.to_python import decimal_of
from boathouse.variant.validate import validate_bytes
from boathouse.variant.value import Variant

_KINDS = (
    (b"PAR1", "a Parquet file: read it with boathouse.read_parquet"),
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"Obj\x01", "an Avro file"),
    (b"ARROW1", "an Arrow file"),
)


def load(file: str, metadata_file: str | None, hex: bool) -> tuple[bytes, bytes]:
    """(metadata, value) from files; the text of a NAME.json is encoded.

    Raises NotFoundError, InvalidArgumentError (the file cannot contain a variant), MalformedVariant, InvalidJsonError.
    """
    if file.endswith(".json") and metadata_file is None and not hex:
        made = Variant.from_json(_read(file))
        return made.metadata, made.value
    raw = _bytes(file, hex)
    if metadata_file is not None:
        return _bytes(metadata_file, hex), raw
    try:
        size = parse_metadata(raw).size
    except MalformedVariant as problem:
        raise MalformedVariant(
            f"{problem.message}: the file holds {_kind(raw)}",
            offset=problem.offset,
            where=file,
            advice="pass a file of metadata and value, or the value with --metadata FILE",
        ) from None
    return raw[:size], raw[size:]


def _bytes(file: str, hex: bool) -> bytes:
    raw = _read(file)
    if not hex:
        return raw
    try:
        return bytes.fromhex(raw.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        raise InvalidArgumentError("the file contains characters that are not hexadecimal digits", where=file) from None


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except IsADirectoryError:
        raise InvalidArgumentError("this is a folder", where=file, advice="name a file") from None
    except FileNotFoundError:
        raise NotFoundError("the file does not exist", where=file) from None
    except OSError as problem:
        raise InvalidArgumentError(f"cannot be read: {problem.strerror}", where=file) from None


def _kind(raw: bytes) -> str:
    """A short description of bytes that are not a variant."""
    if not raw:
        return "no bytes"
    known = next((name for magic, name in _KINDS if raw.startswith(magic)), None)
    if known:
        return known
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        return f"{len(raw):,} bytes that start with {raw[:8].hex(' ')}"
    if text and not text.strip("0123456789abcdefABCDEF \n"):
        return "hexadecimal digits: add --hex"
    return "JSON text: call it NAME.json" if text[:1] in ("{", "[", '"') else f"text that starts with {text[:20]!r}"


def inspect(metadata: bytes, value: bytes, path: str = "$", limit: int = 1000) -> dict[str, Any]:
    """The value at a path: its type, JSON text, tree of at most `limit` values, and the findings about all bytes.

    Raises ExpressionError for an invalid path, NotFoundError if there is no value at it.
    """
    steps = parse_path(path)
    findings = [
        {"kind": f.kind, "path": f.path, "offset": f.offset, "message": f.message}
        for f in validate_bytes(metadata, value)
    ]
    found: dict[str, Any] = {
        "path": format_path(steps), "type": None, "json": None, "size": len(value),
        "metadata": {"size": len(metadata), "names": [], "sorted": None}, "tree": [], "more": False,
        "findings": findings,
    }  # fmt: skip
    try:
        dictionary = parse_metadata(metadata)
        found["metadata"] |= {"names": _names(dictionary), "sorted": dictionary.flag}
        here = _follow(Variant(metadata, value), steps)
    except MalformedVariant:
        if findings:
            return found
        raise
    found["tree"], found["more"] = tree(here, limit)
    root = found["tree"][0]
    found["type"] = root["type"]
    found["size"] = len(value) if root["size"] is None else root["size"]
    try:
        found["json"] = here.to_json(special="string")
    except BoathouseError:
        found["json"] = None  # the findings say why
    return found


def _names(dictionary: Metadata) -> list[str]:
    return [dictionary.name_bytes(id).decode(errors="replace") for id in range(len(dictionary))]


def _follow(v: Variant, steps: tuple[Step, ...]) -> Variant:
    for i in range(len(steps)):
        found = v.get(steps[i : i + 1])
        if found is None:
            where = format_path(steps[:i])
            raise NotFoundError(
                f"{format_path(steps)} does not exist: at {where} there is {_holds(v)}",
                advice="show the parent path to see what exists",
            )
        v = found
    return v


def _holds(v: Variant) -> str:
    if v.type == "object":
        names = v.keys()
        few = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
        return f"an object with the fields {few}" if names else "an empty object"
    return f"an array of {len(v):,}" if v.type == "array" else f"the {v.type} {_shown(v)}"


class _Place(NamedTuple):
    name: str | None
    depth: int
    pos: int
    end: int


def tree(v: Variant, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """(values in stored order, parents first; whether some are omitted). The value of what cannot be read is the
    error."""
    data, (pos, end) = v.buffer, v.span
    nodes: list[dict[str, Any]] = []
    work = [_Place(None, 0, pos, end)]
    while work and len(nodes) < limit:
        place = work.pop()
        children: list[_Place] = []
        node: dict[str, Any] = {
            "depth": place.depth, "name": place.name, "offset": place.pos, "size": None, "bytes": "",
            "type": "?", "value": None,
        }  # fmt: skip
        try:
            stop = value_end(data, place.pos, place.end)
            if stop < 0:
                node |= {"bytes": data[place.pos :][:1].hex(), "type": f"primitive type {data[place.pos] >> 2}"}
            else:
                children = _describe(v, place, stop, node)
        except MalformedVariant as problem:
            node["value"] = f"malformed: {problem.message}"
        nodes.append(node)
        work.extend(reversed(children))
    return nodes, bool(work)


def _describe(v: Variant, place: _Place, stop: int, node: dict[str, Any]) -> list[_Place]:
    """Completes a node, and finds its children."""
    data = v.buffer
    here = Variant.view(v.dictionary, data, place.pos, stop)
    node |= {"size": stop - place.pos, "type": here.type, "bytes": data[place.pos : stop].hex()}
    if data[place.pos] & 3 <= SHORT_STRING:
        node["value"] = _shown(here)
        return []
    box = read_container(data, place.pos, stop)
    node["bytes"] = data[place.pos : box.values_at].hex()
    node["value"] = f"of {len(here):,}"
    names = _field_names(v, box) if box.is_object else [f"[{i}]" for i in range(box.elements)]
    offsets = unsigned(data, box.offsets_at, box.offset_size, box.elements)
    return [
        _Place(name, place.depth + 1, box.values_at + offset, box.end)
        for name, offset in zip(names, offsets, strict=True)
    ]


def _field_names(v: Variant, box: Container) -> list[str]:
    """The names of an object's fields; the ids where they cannot be read."""
    ids = unsigned(v.buffer, box.ids_at, box.id_size, box.elements)
    names = []
    for id in ids:
        try:
            names.append(v.dictionary.name(id))
        except MalformedVariant:
            names.append(f"field id {id}")
    return names


def _shown(v: Variant) -> str | None:
    """A scalar as text: strings as in JSON, bytes in hexadecimal, decimals with all digits."""
    if v.type == "null":
        return None
    if isinstance(v.scalar, tuple):
        return f"{decimal_of(*v.scalar):f}"
    if v.type == "string":
        return json.dumps(v.scalar, ensure_ascii=False)
    if isinstance(v.scalar, bytes) and v.type == "binary":
        return v.scalar.hex()
    return to_text(v)
