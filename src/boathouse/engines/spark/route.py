"""Chooses the scan strategy: native (Spark's own Parquet reader) or task-based (executor tasks run the format's
reader); and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as S

from boathouse.engines.spark import ansi
from boathouse.engines.spark.asked import asking_obstacle, looked_at
from boathouse.engines.spark.constants import carrier
from boathouse.engines.spark.equality import equality_obstacle
from boathouse.engines.spark.probe import reader_fault
from boathouse.engines.spark.read_schema import holds_struct, nested_obstacle
from boathouse.engines.spark.reader import literal, read_parquet
from boathouse.engines.spark.schema import native_obstacle
from boathouse.engines.spark.session import Reach, facts, flag
from boathouse.storage.uris import basename, split
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.table.units import PARQUET

_SPELLINGS = {"s3": ("s3", "s3a")}
"""Hadoop's schemes for our stores: `s3a` is the name of its own S3 client."""
_CAUSE_LENGTH = 200
MAX_FILES = 50_000
MAX_DELETED = 64 << 20
"""The limit of bytes of inline deletion vectors to broadcast; the words sent are at most a few times larger than
roaring."""
_KEEPS_STRUCTS = (4, 1)
_STRUCTS_AS_NULL = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
"""From this version on, and without this setting, a struct of which a file has no field is null only where it was."""
_READS_ANNOTATED = (4, 1)
_READS_HIDDEN = (4, 3)
"""From this version on `ignoredPathSegmentRegex` allows listing names that begin with `_` or `.`."""
_SUSPECT = r"[\x00-\x1f\x7f]|^[^:]*:.*:|^[^:]*:/+[^/].*//|/\.{1,2}(/|$)|/[_.][^/]*$|\._COPYING_$|^memory:"
"""Finds every path that `_of_path` may refuse."""
_PLACE = r"(?s)^([^:/]+://[^/]*).*$"


@dataclass(frozen=True, slots=True)
class Route:
    """`via` is native or tasks; `reason` is for `explain()`."""

    via: Literal["native", "tasks"]
    reason: str

    def __str__(self) -> str:
        return f"{self.via}: {self.reason}"


def route(spark: SparkSession, plan: ScanPlan) -> Route:
    """Decides for one plan; cheap checks first, requests to Spark last."""
    planned = looked_at(spark, plan)
    found = (
        _of_units(spark, planned.units)
        or _of_columns(plan.read, spark)
        or _of_condition(plan.read, spark)
        or _of_vectors(planned.deletes)
        or equality_obstacle(plan.read, planned)
        or _of_session(spark, planned.units)
    )
    if found is None:
        listed = asking_obstacle(spark, planned.units)
        how = "for each query it asks which" if listed is None else f"it lists them, since {listed}"
        return Route("native", f"Spark's own Parquet reader reads the files of the plan; {how}")
    return Route("tasks", found)


def files_obstacle(spark: SparkSession, units: pa.Table) -> str | None:
    """Why Spark cannot read files that a query found; None if it can. They were to have no deleted rows."""
    if pc.max(units.column("deleted")).as_py() or pc.count_distinct(units.column("spec")).as_py() > 1:
        return "the files differ from what the version's metadata says of all of them"
    return asking_obstacle(spark, units) or _of_units(spark, units) or _of_session(spark, units)


def _of_units(spark: SparkSession, units: pa.Table) -> str | None:
    if units.num_rows == 0:
        return "there are no files to read"
    if not pc.all(pc.equal(units.column("format"), PARQUET)).as_py():
        return "the files are not Parquet"
    if units.column("parts").null_count < units.num_rows:
        return "units of several parts"
    if units.num_rows > MAX_FILES and asking_obstacle(spark, units) is not None:
        return f"{units.num_rows:,} files are more than the {MAX_FILES:,} that Spark lists well"
    paths = units.column("path")
    if pc.count_distinct(paths).as_py() < len(paths):
        return "a file is listed twice"
    hidden = facts(spark).version >= _READS_HIDDEN or asking_obstacle(spark, units) is None
    suspects = paths.filter(pc.match_substring_regex(paths, _SUSPECT)).to_pylist()
    return next((o for p in suspects if (o := _of_path(p, hidden))), None)


def _of_path(uri: str, hidden: bool) -> str | None:
    """Why Spark cannot read a file with this path; `hidden`: it can where the name begins with `_` or `.`."""
    scheme, _, key = split(uri)
    name = basename(uri)
    if scheme == "memory":
        return "files in memory"
    if ":" in name or name.endswith("._COPYING_") or any(ord(c) < 32 or ord(c) == 127 for c in key):
        return f"Spark cannot read a file called {name!r}"
    if name.startswith(("_", ".")) and not hidden:
        return f"Spark before 4.3 skips a file called {name!r}"
    if ":" in key and literal(key) != key:
        return f"Spark cannot read the path {key!r}: a colon beside one of * ? [ ] {{ }} \\"
    if "//" in key or any(part in (".", "..") for part in key.split("/")):
        return f"Spark would change the path {key!r}"
    return None


def _of_columns(read: ReadSpec, spark: SparkSession) -> str | None:
    if others := [h for h in read.hidden if h not in (UNIT, POSITION) and h not in read.constants]:
        return f"metadata columns {', '.join(others)}"
    found = next((o for c in read.columns if (o := _of_column(c))), None)
    if found is not None:
        return found
    if read.variants and facts(spark).version < _READS_ANNOTATED:
        return "Spark before 4.1 cannot read any column of a file in which a variant is annotated"
    struct = next((c.name for c in read.columns if holds_struct(c.type)), None)
    if struct is not None and _nulls_structs(spark):
        return f"this Spark takes a struct for null where a file has none of its fields (`{struct}`)"
    if not flag(spark, "spark.sql.caseSensitive", False):
        if _collide([c.name for c in read.columns]):
            return "column names that differ only in case"
        if _collide([(c.physical or (c.name,))[0] for c in read.columns]):
            return "column names in the files that differ only in case"
    return nested_obstacle(read)


def _of_condition(read: ReadSpec, spark: SparkSession) -> str | None:
    if read.where is None or ansi.same_without(read.where) or ansi.is_on(spark):
        return None
    return f"without {ansi.SETTING} Spark takes the condition for another one"


def _nulls_structs(spark: SparkSession) -> bool:
    return facts(spark).version < _KEEPS_STRUCTS or flag(spark, _STRUCTS_AS_NULL, False)


def _of_column(c: ReadColumn) -> str | None:
    if c.physical is not None and len(c.physical) > 1:
        return f"`{c.name}` is read from inside a struct"
    if (c.constant_in or c.constant_as) and carrier(c.type) is None:
        return f"partition values of type {c.type} (`{c.name}`)"
    return native_obstacle(c.type, c.name)


def _collide(names: Sequence[str]) -> bool:
    return len({n.lower() for n in names}) < len(names)


def _of_vectors(deletes: pa.Table) -> str | None:
    size = pc.sum(pc.binary_length(deletes.column("inline"))).as_py() or 0
    return f"{size:,} bytes of deletion vectors are too many to broadcast" if size > MAX_DELETED else None


def _of_session(spark: SparkSession, units: pa.Table) -> str | None:
    paths = units.column("path")
    places = pc.replace_substring_regex(paths, _PLACE, r"\1")
    first = [paths[pc.index(places, place).as_py()].as_py() for place in places.unique()]
    found = next((o for uri in first if (o := _of_scheme(spark, split(uri)[:2], uri))), None)
    if found is not None:
        return found
    fault = reader_fault(spark)
    return None if fault is None else f"Spark {spark.version} failed the reader's capability check: {fault}"


def _of_scheme(spark: SparkSession, place: tuple[str, str], uri: str) -> str | None:
    """Whether Spark itself reaches this store: checked with one of the plan's files, once per session and bucket."""
    if place[0] == "file":
        return None
    known = facts(spark).stores
    if place not in known:
        known[place] = _reach(spark, place, uri)
    return known[place].obstacle


def _reach(spark: SparkSession, place: tuple[str, str], uri: str) -> Reach:
    first: str | None = None
    for scheme in _SPELLINGS.get(place[0], (place[0],)):
        try:
            _ = read_parquet(spark, [respelled(uri, scheme)], S.StructType([])).schema
            return Reach(scheme)
        except Exception as error:  # py4j's own on classic, PySpark's on Connect
            first = first or cause(error)
    return Reach(place[0], f"Spark cannot reach {place[0]}://{place[1]}: {first}")


def respelled(uri: str, scheme: str) -> str:
    """The URI under another scheme of the same store."""
    return f"{scheme}:{uri.partition(':')[2]}"


def as_spark_reads(spark: SparkSession, units: pa.Table) -> pa.Table:
    """The units with the URIs by which this session reaches their files, as found by `route`."""
    known = facts(spark).stores
    if all(place[0] == reach.scheme for place, reach in known.items()):
        return units
    at = units.schema.get_field_index("path")
    paths = units.column(at)
    for (scheme, authority), reach in known.items():
        there = pc.starts_with(paths, f"{scheme}://{authority}/")
        if scheme != reach.scheme and pc.any(there).as_py():
            other = pc.binary_replace_slice(paths, 0, len(scheme), reach.scheme)
            paths = pc.if_else(there, other, paths)
    return units.set_column(at, units.schema.field(at), paths)


def cause(error: Exception) -> str:
    """The cause, on one line: py4j's own first line only names the call."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    found = lines[0].removeprefix(":").strip() if lines else type(error).__name__
    return found[:_CAUSE_LENGTH]
