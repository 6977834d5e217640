"""Features that a table no longer needs, and how they are dropped.

A feature that only writers know goes in one commit. One that readers know stays in the history: a reader without it
must not replay commits that use it. So its traces are removed first; the commit that drops it follows a checkpoint of
the version before, which has none; and the feature checkpointProtection keeps that checkpoint
(delta-io/delta, protocol_rfcs/checkpoint-protection.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.commit.known_files import added_again
from boathouse.delta.features.change_data import FEED
from boathouse.delta.features.column_mapping import disabled
from boathouse.delta.features.computed import DEFAULT, GENERATION
from boathouse.delta.features.constraints import INVARIANT, constraints
from boathouse.delta.features.domains import CLUSTERING, ROW_TRACKING, domains
from boathouse.delta.features.identity import START
from boathouse.delta.features.row_ids import ENABLED as ROW_IDS
from boathouse.delta.features.row_ids import ID_COLUMN, VERSION_COLUMN
from boathouse.delta.features.support import FEATURES, V2_POLICY, dropped, known, supports
from boathouse.delta.features.type_changes import FEATURE as WIDENING
from boathouse.delta.features.type_changes import PREVIEW as WIDENING_PREVIEW
from boathouse.delta.features.widening import ENABLED as WIDENS
from boathouse.delta.features.widening import unwidened
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.log.cleanup import PROTECTED
from boathouse.delta.log.commit_times import ENABLED as TIMES
from boathouse.delta.names import check_characters
from boathouse.delta.schema import parse_schema
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.table.features import FeatureDrop
from boathouse.types.data_types import TIMESTAMP_NTZ

Action = dict[str, Any]
PROTECTION: Final = "checkpointProtection"


@dataclass(frozen=True, slots=True)
class _Rule:
    """`off` are properties that turn the feature off, with the values that it then has; `use` says what else uses it,
    which the user must undo. `needed_by` are features that include it. `clear` makes the metaData without it, where
    the schema has something of it and files are written accordingly."""

    off: Mapping[str, str | None] = field(default_factory=dict)
    use: Callable[[DeltaSnapshot], str | None] = lambda _: None
    needed_by: tuple[str, ...] = ()
    clear: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


def _flagged(key: str) -> Callable[[DeltaSnapshot], str | None]:
    return lambda s: f"the property {key} is true: set it to false first" if s.metadata.flag(key) else None


def _declared(key: str) -> Callable[[DeltaSnapshot], str | None]:
    def use(snapshot: DeltaSnapshot) -> str | None:
        found = [".".join(path) for path, f in snapshot.schema.walk() if key in f.metadata]
        return f"the column `{found[0]}` has {key}: drop the column first" if found else None

    return use


def _constrained(snapshot: DeltaSnapshot) -> str | None:
    found = [c.name for c in constraints(snapshot.metadata)]
    return f"there are constraints: drop {', '.join(found)} first" if found else None


def _clustered(snapshot: DeltaSnapshot) -> str | None:
    if snapshot.metadata.column_mapping == "none" or CLUSTERING not in domains(snapshot):
        return None
    return "clustering columns have their physical names: drop the feature clustering first"


def _has_ntz(snapshot: DeltaSnapshot) -> str | None:
    found = [".".join(path) for path, f in snapshot.schema.walk() if f.type == TIMESTAMP_NTZ]
    return f"the column `{found[0]}` is timestamp_ntz: drop the column first" if found else None


def _has_domains(snapshot: DeltaSnapshot) -> str | None:
    found = sorted(domains(snapshot))
    return f"there are domains, {', '.join(found)}, which their owner must remove" if found else None


def _protects(snapshot: DeltaSnapshot) -> str | None:
    """What is left of the history that must stay readable."""
    before = snapshot.metadata.number(PROTECTED, 0)
    listing = snapshot.log.listing()
    oldest = min([*listing.commits, *(c.version for c in listing.checkpoints)], default=0)
    if oldest >= before:
        return None
    return f"the log has version {oldest}, and versions before {before} need it: they must have been cleaned up"


_RULES: Final[Mapping[str, _Rule]] = {
    "appendOnly": _Rule(use=_flagged("delta.appendOnly")),
    "invariants": _Rule(use=_declared(INVARIANT)),
    "checkConstraints": _Rule(use=_constrained),
    "changeDataFeed": _Rule(use=_flagged(FEED)),
    "generatedColumns": _Rule(use=_declared(GENERATION)),
    "columnMapping": _Rule(use=_clustered, needed_by=("icebergCompatV1", "icebergCompatV2"), clear=disabled),
    "identityColumns": _Rule(use=_declared(START)),
    "allowColumnDefaults": _Rule(use=_declared(DEFAULT)),
    "deletionVectors": _Rule({"delta.enableDeletionVectors": "false"}),
    "timestampNtz": _Rule(use=_has_ntz),
    "vacuumProtocolCheck": _Rule(),
    "v2Checkpoint": _Rule({V2_POLICY: "classic"}),
    "rowTracking": _Rule({ROW_IDS: "false", **dict.fromkeys((ID_COLUMN, VERSION_COLUMN))}),
    "domainMetadata": _Rule(use=_has_domains, needed_by=("rowTracking", "clustering")),
    "clustering": _Rule(),
    "inCommitTimestamp": _Rule({TIMES: "false"}),
    **dict.fromkeys((WIDENING, WIDENING_PREVIEW), _Rule({WIDENS: "false"}, clear=unwidened)),
    "icebergCompatV1": _Rule({"delta.enableIcebergCompatV1": "false"}),
    "icebergCompatV2": _Rule({"delta.enableIcebergCompatV2": "false"}),
    PROTECTION: _Rule({PROTECTED: None}, _protects),
}
_DOMAINS: Final = {"rowTracking": ROW_TRACKING, "clustering": CLUSTERING}


@dataclass(frozen=True, slots=True)
class DeltaProtocolFeatures:
    """See `table.features.ProtocolFeatures`."""

    snapshot: DeltaSnapshot

    def feature_drop(self, name: str) -> FeatureDrop:
        """What must be undone before the feature can be dropped.

        Raises InvalidArgumentError if the table has no such feature, UnsupportedFeatureError if it is used, or never
        goes.
        """
        snapshot, where = self.snapshot, self.snapshot.location.uri
        if not supports(snapshot.protocol, name):
            raise InvalidArgumentError(f"the table has no feature {name!r}", where=where, advice="see detail()")
        rule, feature = _RULES.get(name), known(name)
        if rule is None or feature is None:
            raise UnsupportedFeatureError(f"dropping the feature {name} is not offered", where=where)
        for other in rule.needed_by:
            if supports(snapshot.protocol, other):
                raise UnsupportedFeatureError(
                    f"the feature {other} needs {name}", where=where, advice=f"drop the feature {other} first"
                )
        if (why := rule.use(snapshot)) is not None:
            what, _, advice = why.partition(": ")
            raise UnsupportedFeatureError(f"the feature {name} is in use: {what}", where=where, advice=advice or None)
        configuration = snapshot.metadata.configuration
        off = {k: v for k, v in rule.off.items() if _needed(k, v, configuration)}
        purge = name == "deletionVectors" and _has_vectors(snapshot)
        return FeatureDrop(off, purge, rule.clear is not None and _clear(snapshot, rule.clear), feature.reader)


def _clear(snapshot: DeltaSnapshot, without: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> bool:
    return without(snapshot.metadata.raw) != snapshot.metadata.raw


def cleared(raw: Mapping[str, Any], newest: DeltaSnapshot, name: str) -> Mapping[str, Any]:
    """The metaData without what the schema says for the feature. Raises SchemaError for names of columns that need
    it."""
    without = _RULES[name].clear
    assert without is not None  # feature_drop asked for it
    found = without(raw)
    where = newest.location.uri
    check_characters(parse_schema(found["schemaString"], where).fields, where)
    return found


def _needed(key: str, value: str | None, configuration: Mapping[str, str]) -> bool:
    """Whether a property has another value; flags that are absent are false."""
    recorded = configuration.get(key)
    if value is None or value == "false":
        return recorded is not None and recorded.lower() != value
    return recorded != value


def _has_vectors(snapshot: DeltaSnapshot) -> bool:
    return any(
        pc.any(pc.fill_null(pc.not_equal(batch.column("deleted"), 0), True)).as_py() for batch in snapshot.files()
    )


def protocol_without(newest: DeltaSnapshot, name: str) -> Action:
    """The protocol without the feature; with protection for the history of one that readers know.

    Raises what `DeltaProtocolFeatures.feature_drop` raises, and UnsupportedFeatureError if it is used again.
    """
    left = DeltaProtocolFeatures(newest).feature_drop(name)
    if left.separate and (left.properties or left.purge or left.clear):
        raise UnsupportedFeatureError(
            f"the feature {name} is used again", where=newest.location.uri, advice="call drop_feature again"
        )
    return dropped(newest.protocol, name, (PROTECTION,) if left.separate else ())


def protected(raw: Mapping[str, Any], newest: DeltaSnapshot, name: str) -> Mapping[str, Any]:
    """The metaData of the commit that drops the feature."""
    if not FEATURES[name].reader:
        return raw
    configuration = {**(raw.get("configuration") or {}), PROTECTED: str(newest.version + 1)}
    return {**raw, "configuration": configuration}


def drops_history(actions: Sequence[Mapping[str, Any]], version: int) -> bool:
    """Whether a commit is one that drops a feature which readers know: a checkpoint follows it, too."""
    configurations = (a["metaData"].get("configuration") or {} for a in actions if "metaData" in a)
    return any(c.get(PROTECTED) == str(version) for c in configurations)


def traces(newest: DeltaSnapshot, name: str) -> Iterator[Action]:
    """The actions that take the feature's other traces from the newest version; for one that readers know, a
    checkpoint of that version is written."""
    if FEATURES[name].reader and (newest.checkpoint is None or newest.checkpoint.version != newest.version):
        write_checkpoint(newest)
    domain = _DOMAINS.get(name)
    if domain is not None and (configuration := domains(newest).get(domain)) is not None:
        yield {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": True}}


def untracked(newest: DeltaSnapshot) -> Iterator[Action]:
    """Every file again, without the ids of its rows: ids that are given later must not meet them."""
    units = pa.Table.from_batches(list_files(newest, (), None, None, all_stats=True), schema_of(newest, ()))
    for action in added_again(units, False):
        if action.pop("baseRowId", None) is not None:
            action.pop("defaultRowCommitVersion", None)
            yield action
