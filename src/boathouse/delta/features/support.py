"""Which protocol features of a table may be read and written here (PROTOCOL.md, "Table Features").

Every other feature is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from boathouse.delta.actions import LISTS_READER, LISTS_WRITER, MAPPING_MODE, Metadata, Protocol, text_of
from boathouse.errors import UnsupportedFeatureError
from boathouse.types import DataType, Schema, VariantType
from boathouse.types.data_types import TIMESTAMP_NTZ

CONSTRAINT: Final = "delta.constraints."
"""What the properties that are CHECK constraints begin with."""
V2_POLICY: Final = "delta.checkpointPolicy"
"""The property that says which checkpoints are written: `classic`, or `v2`."""

V = TypeVar("V")
Active = Callable[[Metadata], bool]
MAX_READER: Final = LISTS_READER
MAX_WRITER: Final = LISTS_WRITER


@dataclass(frozen=True, slots=True)
class Feature:
    """`read` and `write` say what is supported. `legacy` is the (reader, writer) version that implies the feature.

    A feature that the table supports but that is not `active` in its metadata has no requirements for writers.
    """

    name: str
    reader: bool
    read: bool
    write: bool
    legacy: tuple[int, int] | None = None
    active: Active = lambda _metadata: True


def _has_field_key(*keys: str) -> Active:
    return lambda metadata: any(k in f.metadata for _, f in metadata.schema.walk() for k in keys)


def _is_true(key: str) -> Active:
    return lambda metadata: metadata.configuration.get(key, "false").strip().lower() == "true"


def _has_prefix(prefix: str) -> Active:
    return lambda metadata: any(k.startswith(prefix) for k in metadata.configuration)


_TABLE: Final = (
    Feature("appendOnly", False, True, True, (1, 2)),
    Feature("invariants", False, True, True, (1, 2), _has_field_key("delta.invariants")),
    Feature("checkConstraints", False, True, True, (1, 3), _has_prefix(CONSTRAINT)),
    Feature("changeDataFeed", False, True, True, (1, 4), _is_true("delta.enableChangeDataFeed")),
    Feature("generatedColumns", False, True, True, (1, 4)),
    Feature("columnMapping", True, True, True, (2, 5)),
    Feature("identityColumns", False, True, True, (1, 6)),
    Feature("deletionVectors", True, True, True),
    Feature("timestampNtz", True, True, True),
    Feature("vacuumProtocolCheck", True, True, True),
    Feature("v2Checkpoint", True, True, True),
    Feature("allowColumnDefaults", False, True, True),
    Feature("rowTracking", False, True, True),
    Feature("domainMetadata", False, True, True),
    Feature("clustering", False, True, True),
    Feature("inCommitTimestamp", False, True, True),
    Feature("icebergCompatV1", False, True, True),
    Feature("icebergCompatV2", False, True, True),
    Feature("checkpointProtection", False, True, True),
    Feature("catalogManaged", True, False, False),
    Feature("typeWidening", True, True, True),
    Feature("typeWidening-preview", True, True, True),
    Feature("variantType", True, True, True),
    Feature("variantType-preview", True, True, True),
    Feature("variantShredding", True, True, True),
    Feature("variantShredding-preview", True, True, True),
)
FEATURES: Final[Mapping[str, Feature]] = {f.name: f for f in _TABLE}
ICEBERG_COMPAT: Final = {
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
}
_TURNED_ON_BY: Final = {
    **ICEBERG_COMPAT,
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableVariantShredding": "variantShredding",
    "delta.enableRowTracking": "rowTracking",
}
"""The property that, if true, needs a feature."""
_NEEDS: Final = {
    "rowTracking": "domainMetadata",
    "clustering": "domainMetadata",
    "variantShredding": "variantType",
    "icebergCompatV1": "columnMapping",
    "icebergCompatV2": "columnMapping",
}
"""The feature that another one needs."""
_MADE_BY: Final = {
    "delta.generationExpression": "generatedColumns",
    "CURRENT_DEFAULT": "allowColumnDefaults",
    "delta.identity.start": "identityColumns",
}
"""The key in the metadata of a column that needs a feature."""
_ALIASES: Final = {"timestampWithoutTimezone": "timestampNtz", "columnInvariants": "invariants"}


ASKED: Final = "delta.feature."
"""A property that begins so adds the feature of that name; it is not stored (as the reference does it)."""


VERSIONS: Final = ("delta.minReaderVersion", "delta.minWriterVersion")
"""Properties that ask for the features of these versions of the protocol; they are not stored either."""


def known(name: str) -> Feature | None:
    return FEATURES.get(_ALIASES.get(name, name))


def check_read(protocol: Protocol, where: str) -> None:
    """Raises UnsupportedFeatureError, naming versions and features, unless the table may be read."""
    if protocol.min_reader > MAX_READER:
        raise _too_new("reader", protocol.min_reader, MAX_READER, protocol.reader_features, where)
    refused = [n for n in protocol.reader_features if (f := known(n)) is None or not f.read]
    if refused:
        raise UnsupportedFeatureError(
            f"reading needs the Delta feature{'s' if len(refused) > 1 else ''} {', '.join(sorted(refused))}",
            where=where,
            advice="upgrade boathouse, or read the table with the engine that wrote it",
        )


def check_write(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Raises UnsupportedFeatureError, naming versions and features, unless the table may be written."""
    check_read(protocol, where)
    if protocol.min_writer > MAX_WRITER:
        raise _too_new("writer", protocol.min_writer, MAX_WRITER, protocol.writer_features, where)
    refused = []
    for name in writer_features(protocol):
        feature = known(name)
        if feature is None or (not feature.write and feature.active(metadata)):
            refused.append(name)
    if refused:
        raise UnsupportedFeatureError(
            f"writing needs the Delta feature{'s' if len(refused) > 1 else ''} {', '.join(sorted(refused))}",
            where=where,
            advice="upgrade boathouse, or write the table with the engine that uses the feature",
        )


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """The features that a writer must honour: the list of version 7, or what an older version implies.

    In an older draft version 7 was deletion vectors and implied what came before it.
    """
    if protocol.has_no_lists:
        return (*(f.name for f in _TABLE if f.legacy), "deletionVectors")
    if protocol.min_writer >= MAX_WRITER:
        return protocol.writer_features
    return tuple(f.name for f in _TABLE if f.legacy and _implied(f, f.legacy, protocol))


def _implied(feature: Feature, legacy: tuple[int, int], protocol: Protocol) -> bool:
    reader = not feature.reader or legacy[0] <= protocol.min_reader
    return reader and legacy[1] <= protocol.min_writer


def maps_columns(protocol: Protocol) -> bool:
    """Whether readers honour the property of column mapping. Version 3 without lists is of an early draft, in which it
    implied what version 2 did."""
    if protocol.min_reader < MAX_READER:
        return protocol.min_reader == 2
    return protocol.has_no_lists or "columnMapping" in protocol.reader_features


def supports(protocol: Protocol, name: str) -> bool:
    """Whether the table's protocol includes the feature for writers."""
    return name in {_ALIASES.get(n, n) for n in (*writer_features(protocol), *protocol.reader_features)}


def type_feature(type: DataType) -> str | None:
    """The feature that a table needs for a column of the type."""
    if type == TIMESTAMP_NTZ:
        return "timestampNtz"
    return "variantType" if isinstance(type, VariantType) else None


def asked_by_name(properties: Mapping[str, object]) -> list[str]:
    """The features that properties name, as the protocol spells them; unknown names are left out."""
    names = {name.lower(): name for name in FEATURES}
    wanted = (key[len(ASKED) :].lower() for key, value in properties.items() if key.startswith(ASKED) and value)
    return [*(names[name] for name in wanted if name in names), *_of_versions(properties)]


def _of_versions(properties: Mapping[str, object]) -> list[str]:
    """The features that the versions of a protocol imply, as far as properties ask for versions. Those with lists of
    features imply none."""
    reader, writer = (int(found) if (found := text_of(properties.get(k) or 1)).isdigit() else 1 for k in VERSIONS)
    if writer >= MAX_WRITER:
        return []
    return [f.name for f in _TABLE if f.legacy and _implied(f, f.legacy, Protocol(reader, writer))]


def without_names(properties: Mapping[str, V]) -> dict[str, V]:
    """The properties that are stored."""
    return {k: v for k, v in properties.items() if not k.startswith(ASKED) and k not in VERSIONS}


def lowest_protocol(schema: Schema, properties: Mapping[str, object] = {}) -> dict[str, Any]:
    """The lowest protocol action that supports a new table with this schema and these properties."""
    of_types = (type_feature(f.type) for _, f in schema.walk())
    asked = [
        *asked_by_name(properties),
        *of_columns(schema),
        *_asked_for({k: text_of(v) for k, v in properties.items()}),
    ]
    lowest = Protocol(1, 2)
    needed = [n for n in _closed([*(n for n in of_types if n), *asked]) if not supports(lowest, n)]
    return _raised(lowest, needed) if needed else {"minReaderVersion": 1, "minWriterVersion": 2}


def upgraded(
    protocol: Protocol, metadata: Metadata, other: Protocol | None = None, asked: Iterable[str] = ()
) -> dict[str, Any] | None:
    """The protocol action that the properties of `metadata` need in addition, with the features `asked`; None if it
    stays.

    It also supports every feature of `other`, all of which are known. A feature is not added where its preview is
    there: that would lock out readers that know the preview only.
    """
    more = [] if other is None else [*writer_features(other), *other.reader_features]
    turned_on = _asked_for(metadata.configuration, metadata.mappable)
    wanted = _closed([*turned_on, *asked, *(_ALIASES.get(n, n) for n in more)])
    needed = [n for n in wanted if not (supports(protocol, n) or supports(protocol, f"{n}-preview"))]
    return _raised(protocol, needed) if needed or protocol.has_no_lists else None


def _raised(protocol: Protocol, needed: Sequence[str]) -> dict[str, Any]:
    """The protocol with these features: an older version that implies them, or else the lists of features."""
    legacy = [f.legacy for name in needed if (f := FEATURES[name]).legacy is not None]
    if len(legacy) < len(needed) or protocol.min_writer >= MAX_WRITER:
        return _with_features(protocol, needed)
    versions = [(protocol.min_reader, protocol.min_writer), *legacy]
    reader, writer = (max(found) for found in zip(*versions))
    return {"minReaderVersion": reader, "minWriterVersion": writer}


def _asked_for(properties: Mapping[str, str], mappable: bool = True) -> list[str]:
    """The features that properties turn on."""
    found = [name for key, name in _TURNED_ON_BY.items() if properties.get(key, "").strip().lower() == "true"]
    if properties.get(V2_POLICY, "").strip().lower() == "v2":
        found.append("v2Checkpoint")
    if mappable and properties.get(MAPPING_MODE, "none").strip().lower() != "none":
        found.append("columnMapping")
    return [*found, "checkConstraints"] if any(key.startswith(CONSTRAINT) for key in properties) else found


def _closed(names: Iterable[str]) -> list[str]:
    """The features and those that they need."""
    found = list(dict.fromkeys(names))
    return list(dict.fromkeys([*found, *(_NEEDS[n] for name in found if (n := _stable(name)) in _NEEDS)]))


def _stable(name: str) -> str:
    return name.removesuffix("-preview")


def of_columns(schema: Schema) -> list[str]:
    """The features that columns need for how their values are made."""
    return [name for key, name in _MADE_BY.items() if any(key in f.metadata for f in schema)]


def _with_features(protocol: Protocol, needed: Iterable[str]) -> dict[str, Any]:
    """Writer version 7, and reader version 3 if readers must know of one, with these features.

    What an older version implied may have been used, so it is listed too.
    """
    readers, writers = list(protocol.reader_features), list(writer_features(protocol))
    if protocol.min_reader < MAX_READER or protocol.has_no_lists:
        implied = [f.name for f in _TABLE if f.reader and f.legacy and f.legacy[0] <= protocol.min_reader]
        readers, writers = readers + implied, writers + implied
    if protocol.has_no_lists:
        readers.append("deletionVectors")
    for feature in (FEATURES[name] for name in needed):
        writers.append(feature.name)
        readers += [feature.name] if feature.reader else []
    if protocol.min_reader < MAX_READER and not any(FEATURES[name].reader for name in needed):
        listed = list(dict.fromkeys(writers))
        return {"minReaderVersion": protocol.min_reader, "minWriterVersion": MAX_WRITER, "writerFeatures": listed}
    return {
        "minReaderVersion": MAX_READER,
        "minWriterVersion": MAX_WRITER,
        "readerFeatures": list(dict.fromkeys(readers)),
        "writerFeatures": list(dict.fromkeys(writers)),
    }


def dropped(protocol: Protocol, name: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """The protocol without the feature, with `more`: an older version if that implies just what is left."""
    listed = _with_features(protocol, more)
    writers = [n for n in listed["writerFeatures"] if _ALIASES.get(n, n) != name]
    readers = [n for n in writers if (f := known(n)) is not None and f.reader]
    for reader, writer in ((r, w) for w in range(1, MAX_WRITER) for r in (1, 2)):
        implied = {f.name for f in _TABLE if f.legacy and _implied(f, f.legacy, Protocol(reader, writer))}
        if implied == {_ALIASES.get(n, n) for n in writers}:
            return {"minReaderVersion": reader, "minWriterVersion": writer}
    version = max((f.legacy[0] if f.legacy else MAX_READER for n in readers if (f := known(n))), default=1)
    found = {"minReaderVersion": version, "minWriterVersion": MAX_WRITER, "writerFeatures": writers}
    return found | ({"readerFeatures": readers} if version == MAX_READER else {})


def _too_new(kind: str, found: int, ours: int, names: tuple[str, ...], where: str) -> UnsupportedFeatureError:
    listed = f" with features {', '.join(names)}" if names else ""
    return UnsupportedFeatureError(
        f"the table needs Delta {kind} version {found}{listed}; this library supports {kind} versions up to {ours}",
        where=where,
        advice="upgrade boathouse",
    )
