"""Options of `spark.read` and `df.write`, named as in other formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boathouse as bh
from boathouse.delta.property_names import PROPERTIES, PROPERTY_NAMES
from boathouse.errors import InvalidArgumentError
from boathouse.parquet.write import CODECS

if TYPE_CHECKING:
    from boathouse.api.table import Table

_STORAGE = "storage."
_READ = frozenset(
    {"path", "versionasof", "timestampasof", "branch", "tag", "tableformat", "pushfilters", "timezone",
     "allowforeignpaths", "relocatedfrom"}
)  # fmt: skip
_WRITE = frozenset(
    {"path", "tableformat", "partitionby", "mergeschema", "overwriteschema", "replacewhere", "txnappid", "txnversion",
     "usermetadata", "timezone", "allowmixedwriters", "partitionoverwritemode", "branch", "compression",
     "maxrecordsperfile"}
)  # fmt: skip


@dataclass(frozen=True)
class ReadOptions:
    """Which table, and which version of it."""

    path: str
    format: str | None = None
    version: int | None = None
    timestamp: str | None = None
    ref: str | None = None
    push_filters: bool = False
    timezone: str | None = None
    foreign_paths: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)
    relocated_from: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Raises InvalidArgumentError for a missing path, an unknown option, and options that exclude each other."""
        given, storage = sorted_out(options, _READ)
        if "branch" in given and "tag" in given:
            raise InvalidArgumentError("the options branch and tag exclude each other", advice="give one of them")
        return cls(
            path_of(given),
            given.get("tableformat"),
            whole(given, "versionasof"),
            given.get("timestampasof"),
            given.get("branch", given.get("tag")),
            flag(given, "pushfilters"),
            given.get("timezone"),
            flag(given, "allowforeignpaths"),
            storage,
            given.get("relocatedfrom"),
        )

    def open(self) -> Table:
        """The table, pinned if a version is requested."""
        return bh.open(
            self.path,
            self.format,
            self.version,
            self.timestamp,
            self.ref,
            self.storage or None,
            timezone=self.timezone,
            allow_foreign_paths=self.foreign_paths,
            relocated=None if self.relocated_from is None else {self.relocated_from: self.path},
        )


@dataclass(frozen=True)
class WriteTarget:
    """The target and mode of a write: the arguments of `boathouse.write`, and its options. Plain values, since
    executors load it too."""

    path: str
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, options: Mapping[str, str], overwrite: bool) -> WriteTarget:
        """Raises InvalidArgumentError."""
        properties = _properties(options)
        given, storage = sorted_out(options, _WRITE, frozenset(name.lower() for name in properties))
        where = given.get("replacewhere")
        if where is not None and not overwrite:
            raise InvalidArgumentError("replaceWhere needs mode overwrite", advice='add .mode("overwrite")')
        path = path_of(given)
        arguments = {
            "format": given.get("tableformat"),
            "mode": "overwrite" if overwrite else "append",
            "partition_by": [n.strip() for n in given.get("partitionby", "").split(",") if n.strip()],
            "where": where,
            "merge_schema": flag(given, "mergeschema"),
            "overwrite_schema": flag(given, "overwriteschema"),
            "storage_options": storage or None,
            "timezone": given.get("timezone"),
            "allow_mixed_writers": flag(given, "allowmixedwriters"),
            "partitions": _partitions(given) if overwrite else None,
            "ref": given.get("branch"),
            "properties": properties or None,
        }
        written = {"compression": _codec(given), "max_file_rows": whole(given, "maxrecordsperfile") or None}
        return cls(path, arguments, {"message": given.get("usermetadata"), "txn": _txn(given), **written})


def _properties(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new Delta table among the options, `delta.enableDeletionVectors`: Spark hands the names over
    in lower case. Raises InvalidArgumentError for one that is not known, or for a table of another format."""
    given = {str(k).lower(): str(v) for k, v in dict(options).items()}
    found = {PROPERTY_NAMES.get(k, k): v for k, v in given.items() if k.startswith("delta.")}
    unknown = next((k for k in found if k not in PROPERTIES), None)
    if unknown is not None:
        raise InvalidArgumentError(
            f"the option {unknown} is no table property that can be set here",
            advice="create the table with it: CREATE TABLE ... TBLPROPERTIES, or t.set_properties(...)",
        )
    if found and given.get("tableformat", "delta").lower() != "delta":
        raise InvalidArgumentError(f"the option {next(iter(found))} is of Delta tables", advice="leave it out")
    return found


def _codec(given: Mapping[str, str]) -> str | None:
    text = given.get("compression")
    codec = None if text is None else text.strip().lower()
    if codec is not None and codec not in CODECS:
        raise InvalidArgumentError(f"the option compression is {text!r}", advice=f"give one of {', '.join(CODECS)}")
    return "none" if codec == "uncompressed" else codec


def _partitions(given: Mapping[str, str]) -> str | None:
    """None: as the session is set."""
    text = given.get("partitionoverwritemode")
    mode = None if text is None else text.strip().lower()
    if mode not in (None, "static", "dynamic"):
        raise InvalidArgumentError(f"the option partitionOverwriteMode is {text!r}", advice="give static or dynamic")
    return mode


def _txn(given: Mapping[str, str]) -> tuple[str, int] | None:
    if "txnappid" not in given and "txnversion" not in given:
        return None
    version = whole(given, "txnversion")
    if version is None or "txnappid" not in given:
        raise InvalidArgumentError("the options txnAppId and txnVersion belong together", advice="give both")
    return given["txnappid"], version


def sorted_out(
    options: Mapping[str, str], known: frozenset[str], ignored: frozenset[str] = frozenset()
) -> tuple[dict[str, str], dict[str, str]]:
    """The options by lower-case name, and separately those of the store. Raises InvalidArgumentError."""
    given = {str(k).lower(): str(v) for k, v in dict(options).items() if str(k).lower() not in ignored}
    storage = {k.removeprefix(_STORAGE): given.pop(k) for k in list(given) if k.startswith(_STORAGE)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InvalidArgumentError(
            f"unknown option {unknown[0]!r}", advice=f"the options are {', '.join(sorted(known))}, storage.<name>"
        )
    return given, storage


def path_of(given: Mapping[str, str]) -> str:
    """The option path. Raises InvalidArgumentError."""
    path = given.get("path", "").strip()
    if not path:
        raise InvalidArgumentError(
            "the path is missing: Spark passes tables by name to Python sources without their location",
            advice="use bh.open(name, spark=spark).to_spark() or .append(df), or bh.sql; or give the option path",
        )
    return path


def whole(given: Mapping[str, str], name: str) -> int | None:
    """An option that is a whole number. Raises InvalidArgumentError."""
    text = given.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"the option {name} is {text!r}", advice="give a whole number") from None


def flag(given: Mapping[str, str], name: str) -> bool:
    """An option that is true or false. Raises InvalidArgumentError."""
    text = given.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidArgumentError(f"the option {name} is {text!r}", advice="give true or false")
    return text == "true"
