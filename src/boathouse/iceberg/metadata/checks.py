"""Checks a metadata document before anything else reads it: the JSON types of its fields, and rules among them.

A document that passes has no value of a type that later code does not expect. The rules are those of Iceberg's own Java
parser, so that a table that others refuse is not read as if it were valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

from boathouse.errors import CorruptTableError
from boathouse.iceberg.metadata.versions import SEEN

Json = dict[str, Any]
Test = Callable[[Any], bool]
_EARLIEST_MS: Final = -62_135_596_800_000
_LATEST_MS: Final = 253_402_300_799_999


def _whole(value: Any) -> bool:
    """A number of 64 bits; True and False are not numbers."""
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _snapshot_id(value: Any) -> bool:
    """Some writers use all 64 bits, unsigned."""
    return type(value) is int and -(1 << 63) <= value < 1 << 64


def _int32(value: Any) -> bool:
    return type(value) is int and -(1 << 31) <= value < 1 << 31


def _time(value: Any) -> bool:
    """Milliseconds of the years 1 to 9999."""
    return type(value) is int and _EARLIEST_MS <= value <= _LATEST_MS


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _id_text(value: Any) -> bool:
    """An id, which some writers store as a string."""
    return _int32(value) or (isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10)


_TEXT: Final = frozenset({str})
_OBJECT: Final = frozenset({dict})


def _strings(value: Any) -> bool:
    return isinstance(value, dict) and _TEXT.issuperset(map(type, value.values()))


def _objects(value: Any) -> bool:
    return isinstance(value, list) and _OBJECT.issuperset(map(type, value))


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _ids(value: Any) -> bool:
    return isinstance(value, list) and all(map(_int32, value))


_INT: Final = frozenset({int})
_RANGES: Final[Mapping[Test, tuple[int, int]]] = {
    _whole: (-(1 << 63), 1 << 63), _snapshot_id: (-(1 << 63), 1 << 64), _int32: (-(1 << 31), 1 << 31),
    _time: (_EARLIEST_MS, _LATEST_MS + 1),
}  # fmt: skip
"""The tests of numbers, as the least that passes and the first above that does not."""
_TOP: Final[Mapping[str, Test]] = {
    **dict.fromkeys(
        ("schemas", "partition-specs", "sort-orders", "snapshots", "snapshot-log", "metadata-log", "statistics",
         "partition-statistics", "encryption-keys"), _objects),
    **dict.fromkeys(("last-sequence-number", "next-row-id"), _whole),
    "current-snapshot-id": _snapshot_id,
    **dict.fromkeys(("last-column-id", "last-partition-id", "current-schema-id", "default-spec-id"), _int32),
    **dict.fromkeys(("default-sort-order-id",), _int32),
    **dict.fromkeys(("table-uuid", "location"), _text),
    "last-updated-ms": _time, "properties": _strings, "refs": _object,
}  # fmt: skip
Tests = tuple[Mapping[str, Test], Mapping[str, Test]]
"""Required and optional fields of an object."""
_STATISTICS: Final[Tests] = ({"snapshot-id": _snapshot_id, "statistics-path": _text}, {})
_SORT_FIELD: Final[Tests] = ({"transform": _text}, {"source-id": _int32, "source-ids": _ids})
_SPEC_FIELD: Final[Tests] = ({"name": _text, "transform": _text}, {"field-id": _int32, **_SORT_FIELD[1]})
_MEMBERS: Final[Mapping[str, Tests]] = {
    "schemas": ({"schema-id": _int32, "fields": _objects}, {"identifier-field-ids": _ids}),
    "partition-specs": ({"spec-id": _int32, "fields": _objects}, {}),
    "sort-orders": ({"order-id": _int32, "fields": _objects}, {}),
    "snapshots": (
        {"snapshot-id": _snapshot_id, "timestamp-ms": _time},
        {"parent-snapshot-id": _snapshot_id, "sequence-number": _whole, "manifest-list": _text, "summary": _strings,
         "schema-id": _id_text, "manifests": lambda v: isinstance(v, list), "key-id": _text, "first-row-id": _whole},
    ),
    "snapshot-log": ({"snapshot-id": _snapshot_id, "timestamp-ms": _time}, {}),
    "metadata-log": ({"metadata-file": _text, "timestamp-ms": _time}, {}),
    "statistics": _STATISTICS,
    "partition-statistics": _STATISTICS,
}  # fmt: skip
_REF: Final[Tests] = ({"snapshot-id": _snapshot_id}, {"type": _text})
_NAMES: Final = {
    "schemas": "schema", "partition-specs": "partition spec", "sort-orders": "sort order", "snapshots": "snapshot",
    "snapshot-log": "entry of the snapshot log", "metadata-log": "entry of the metadata log",
    "statistics": "statistics file", "partition-statistics": "partition statistics file",
}  # fmt: skip


def check_document(document: Json, where: str, known: Json | None = None) -> None:
    """Raises CorruptTableError naming the first thing that is wrong. Members that the document `known`, which was
    checked, has at the same place are not looked at again."""
    missing = [name for name in SEEN.required if document.get(name) is None]
    problem = f"lacks {', '.join(missing)}" if missing else next(_problems(document, known or {}), None)
    if problem is not None:
        raise CorruptTableError(f"the table metadata {problem}", where=where)


def _problems(document: Json, known: Json) -> Iterator[str]:
    for name, test in _TOP.items():
        value = document.get(name)
        if value is not None and not test(value):
            yield f"has {name} {value!r:.80}"
    for name, tests in _MEMBERS.items():
        before = known.get(name) or []
        members = document.get(name) or []
        pairs = zip_longest(members, before[: len(members)])
        new = [m for m, then in pairs if m is not then and m != then] if before else members
        if not _sound(new, tests):
            for member in new:
                yield from _wrong(member, tests, _NAMES[name])
    for name, tests in (("partition-specs", _SPEC_FIELD), ("sort-orders", _SORT_FIELD)):
        for member in document[name]:
            for field in member["fields"]:
                yield from _wrong(field, tests, f"field in a {_NAMES[name]}")
    for name, ref in (document.get("refs") or {}).items():
        if not isinstance(ref, dict):
            yield f"has a ref {name!r:.80} that is {ref!r:.80}"
        else:
            yield from _wrong(ref, _REF, f"ref {name!r:.80}")
    yield from _broken_rules(document)


def _sound(members: Sequence[Json], tests: Tests) -> bool:
    """Whether nothing is wrong with any of them, field by field: a table has hundreds of snapshots."""
    required, optional = tests
    try:
        found = [([member[name] for member in members], test) for name, test in required.items()]
    except KeyError:
        return False
    found += [([v for m in members if (v := m.get(name)) is not None], test) for name, test in optional.items()]
    return all(_all(values, test) for values, test in found)


def _all(values: Sequence[Any], test: Test) -> bool:
    if test in _RANGES:
        low, high = _RANGES[test]
        return _INT.issuperset(map(type, values)) and low <= min(values, default=low) and max(values, default=0) < high
    if test is _strings:
        return _objects(values) and _TEXT.issuperset(map(type, chain.from_iterable(v.values() for v in values)))
    return _TEXT.issuperset(map(type, values)) if test is _text else all(map(test, values))


def _wrong(found: Json, tests: Tests, what: str) -> Iterator[str]:
    """What is missing from an object, or has the wrong type."""
    required, optional = tests
    for name, test in required.items():
        if name not in found:
            yield f"has a {what} without {name}"
        elif not test(found[name]):
            yield f"has a {what} with {name} {found[name]!r:.80}"
    for name, test in optional.items():
        value = found.get(name)
        if value is not None and not test(value):
            yield f"has a {what} with {name} {value!r:.80}"


def _broken_rules(document: Json) -> Iterator[str]:
    for name, key, current in (
        ("schemas", "schema-id", "current-schema-id"),
        ("partition-specs", "spec-id", "default-spec-id"),
        ("sort-orders", "order-id", "default-sort-order-id"),
        ("snapshots", "snapshot-id", None),
    ):
        ids = [member[key] for member in document.get(name) or []]
        twice = _twice(ids)
        if twice is not None:
            yield f"has {_NAMES[name]} {twice} twice"
        if current is not None and document[current] not in ids:
            yield f"says that the current {_NAMES[name]} is {document[current]}, which is not among {ids!r:.200}"
    for spec in document["partition-specs"]:
        for key in ("name", "field-id"):
            twice = _twice([f[key] for f in spec["fields"] if f.get(key) is not None])
            if twice is not None:
                yield f"has two fields with {key} {twice!r:.80} in partition spec {spec['spec-id']}"
    yield from _broken_snapshots(document)


def _broken_snapshots(document: Json) -> Iterator[str]:
    snapshots = {s["snapshot-id"]: s for s in document.get("snapshots") or []}
    last = document["last-sequence-number"]
    for id, snapshot in snapshots.items():
        if (snapshot.get("sequence-number") or 0) > last:
            yield (
                f"has snapshot {id} with sequence number {snapshot['sequence-number']}, "
                f"beyond last-sequence-number {last}"
            )
    current = document.get("current-snapshot-id")
    current = None if current == -1 else current
    if current is not None and current not in snapshots:
        yield f"says that the current snapshot is {current}, which is not listed"
    refs = document.get("refs") or {}
    for name, ref in refs.items():
        if ref["snapshot-id"] not in snapshots:
            yield f"has a ref {name!r:.80} to snapshot {ref['snapshot-id']}, which is not listed"
    if "main" in refs and refs["main"]["snapshot-id"] != current:
        yield f"says that the current snapshot is {current}, and that main is at {refs['main']['snapshot-id']}"


def _twice(values: Sequence[Any]) -> Any:
    """A value that occurs more than once; None if there is none."""
    if len(set(values)) == len(values):
        return None
    return next((value for value, count in Counter(values).items() if count > 1), None)
