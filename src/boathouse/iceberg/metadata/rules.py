"""Rules of a table metadata document beyond those of `checks`: a table that violates one is read here, but Java's
parser refuses it. So nothing is written to such a table, and no commit creates one.

The functions accept documents as JSON and raise CorruptTableError with the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

from boathouse.errors import CorruptTableError
from boathouse.iceberg.metadata.partitions import FIRST_FIELD_ID, accepts, parse_transform
from boathouse.iceberg.metadata.schemas import parse_type
from boathouse.table.findings import Finding

Json = Mapping[str, Any]
CLOCK_SKEW_MS: Final = 60_000
"""How far an entry of a log may be older than the previous entry."""
_NO_IDENTIFIERS = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a schema, possibly nested."""

    id: int
    path: tuple[str, ...]
    type: Any
    required: bool

    @property
    def name(self) -> str:
        return ".".join(self.path)


def check(document: Json, where: str, before: Json | None = None) -> None:
    """Every rule except those of `check_settled`; schemas that `before` contains are not checked again."""
    known = {} if before is None else {s.get("schema-id"): s for s in before["schemas"]}
    with _placed(where):
        for schema in document["schemas"]:
            if known.get(schema["schema-id"]) != schema:
                check_schema(schema)
        _check_specs(document)
        _check_orders(document)
        _check_refs(document)
        _check_logs(document)


def findings(document: Json, where: str) -> Iterator[Finding]:
    """The rules of `check` and `check_settled` that a document violates: other readers, or the next writer, may refuse
    the table."""
    rules: list[Callable[[], None]] = [partial(check_schema, schema) for schema in document["schemas"]]
    for rule in (_check_specs, _check_orders, _check_refs, _check_logs, _check_sort_order, _check_last_ids):
        rules.append(partial(rule, document))
    for broken in rules:
        try:
            with _placed(where):
                broken()
        except CorruptTableError as error:
            yield Finding("iceberg.metadata-rule", "hazard", error.message, where, error.advice)


def check_settled(document: Json, where: str, before: Json | None = None) -> None:
    """Rules that our writes repair: new ids continue from the highest existing one, and the sort order uses existing
    columns."""
    with _placed(where):
        _check_sort_order(document)
        if before is None or any(document[k] != before[k] for k in ("schemas", "partition-specs")):
            _check_last_ids(document)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Adds the file to errors, including those for missing fields and fields of another type."""
    try:
        yield
    except CorruptTableError as error:
        raise CorruptTableError(error.message, where=where, advice=error.advice) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration) as error:
        message = f"the table metadata violates the specification: {error!r}"
        raise CorruptTableError(message, where=where) from None


def walk(schema: Json) -> Iterator[Column]:
    """Every field of a schema, depth first; elements, keys and values have these names."""
    stack: list[tuple[tuple[str, ...], Json]] = [((), f) for f in reversed(schema["fields"])]
    while stack:
        parent, field = stack.pop()
        path, type = (*parent, field["name"]), field["type"]
        yield Column(int(field["id"]), path, type, bool(field["required"]))
        stack.extend((path, member) for member in reversed(_members(type)))


def _members(type: Any) -> list[Json]:
    if isinstance(type, str):
        return []
    match type["type"]:
        case "struct":
            return list(type["fields"])
        case "list":
            return [_member(type, "element", type["element-required"])]
        case "map":
            return [_member(type, "key", True), _member(type, "value", type["value-required"])]
    raise CorruptTableError(f"{type['type']!r} is not a type of the Iceberg specification")


def _member(type: Json, name: str, required: bool) -> Json:
    return {"id": type[f"{name}-id"], "name": name, "type": type[name], "required": required}


def check_schema(schema: Json) -> None:
    """Ids and names are unique, and identifier fields are of types that may identify a row."""
    which = f"schema {schema['schema-id']}"
    columns: dict[int, Column] = {}
    names: dict[str, int] = {}
    for column in walk(schema):
        if column.id in columns:
            raise CorruptTableError(f"{which} gives the id {column.id} to {columns[column.id].name} and {column.name}")
        if column.name in names:
            raise CorruptTableError(f"{which} gives the name {column.name} to fields {names[column.name]}, {column.id}")
        columns[column.id] = column
        names[column.name] = column.id
    for id in schema.get("identifier-field-ids") or ():
        found = columns.get(id)
        if found is None:
            raise CorruptTableError(f"{which} has the identifier field {id}, which does not exist")
        above = [columns[names[".".join(found.path[:n])]] for n in range(1, len(found.path))]
        if not _identifies(found) or not all(c.required and c.type["type"] == "struct" for c in above):
            raise CorruptTableError(f"{which} has the identifier field {found.name}, which cannot identify a row")


def _identifies(column: Column) -> bool:
    return column.required and isinstance(column.type, str) and column.type not in _NO_IDENTIFIERS


def current_schema(document: Json) -> Json:
    """The schema in use."""
    wanted = document["current-schema-id"]
    found: Json = next(s for s in document["schemas"] if s["schema-id"] == wanted)
    return found


def _check_specs(document: Json) -> None:
    columns = {c.id: c for c in walk(current_schema(document))}
    names = {c.name: c.id for c in columns.values()}
    for spec in document["partition-specs"]:
        which = f"partition spec {spec['spec-id']}"
        for field in spec["fields"]:
            column = names.get(field["name"])
            if column is not None and "source-id" in field and column != field["source-id"]:
                raise CorruptTableError(
                    f"{which} has a field `{field['name']}`, but a different column has that name",
                    advice="give the column another name",
                )
        if spec["spec-id"] == document["default-spec-id"]:
            _check_sources(which, spec["fields"], columns)


def _check_sources(which: str, fields: Sequence[Json], columns: Mapping[int, Column]) -> None:
    for field in fields:
        transform = parse_transform(field["transform"])
        if "source-id" not in field or transform.name in ("void", "unknown"):
            continue
        source = columns.get(field["source-id"])
        if source is None:
            raise CorruptTableError(f"{which} uses field {field['source-id']}, which the current schema does not have")
        if not isinstance(source.type, str) or not accepts(transform, parse_type(source.type)):
            raise CorruptTableError(f"{which} has {transform} of `{source.name}`, which is {source.type}")


def _check_refs(document: Json) -> None:
    for name, ref in (document.get("refs") or {}).items():
        if ref["type"] not in ("branch", "tag"):
            raise CorruptTableError(f"the ref {name} is a {ref['type']!r}")


def _check_logs(document: Json) -> None:
    for name in ("snapshot-log", "metadata-log"):
        times = [e["timestamp-ms"] for e in document.get(name) or []]
        times.append(document["last-updated-ms"])
        if any(b - a < -CLOCK_SKEW_MS for a, b in pairwise(times)):
            raise CorruptTableError(f"the {name} is not in chronological order")


def highest_column_id(document: Json) -> int:
    """The highest id that a field has had, whatever `last-column-id` says."""
    given = [c.id for schema in document["schemas"] for c in walk(schema)]
    return max([int(document["last-column-id"]), *given])


def highest_partition_id(document: Json) -> int:
    """The highest id that a partition field has had, whatever `last-partition-id` says."""
    given = [
        int(f.get("field-id", FIRST_FIELD_ID + i))
        for spec in document["partition-specs"]
        for i, f in enumerate(spec["fields"])
    ]
    return max([int(document["last-partition-id"]), *given])


def _check_last_ids(document: Json) -> None:
    for name, highest in (
        ("last-column-id", highest_column_id(document)),
        ("last-partition-id", highest_partition_id(document)),
    ):
        if document[name] < highest:
            raise CorruptTableError(f"{name} is {document[name]}, but {highest} is in use")


def default_sort_order(document: Json) -> Json:
    """The sort order that new files should have."""
    wanted = document["default-sort-order-id"]
    found: Json = next(o for o in document["sort-orders"] if o["order-id"] == wanted)
    return found


def sortable(document: Json) -> bool:
    """Whether the current schema has every column of the default sort order, in a type that its transforms accept."""
    columns = {c.id: c for c in walk(current_schema(document))}
    try:
        _check_sources("the sort order", default_sort_order(document)["fields"], columns)
    except CorruptTableError:
        return False
    return True


def _check_orders(document: Json) -> None:
    """Order 0 is the unsorted one, and no other."""
    for order in document["sort-orders"]:
        if (order["order-id"] == 0) != (not order["fields"]):
            raise CorruptTableError(
                f"sort order {order['order-id']} has {len(order['fields'])} fields: 0 is the one without any"
            )


def _check_sort_order(document: Json) -> None:
    columns = {c.id: c for c in walk(current_schema(document))}
    _check_sources(f"sort order {document['default-sort-order-id']}", default_sort_order(document)["fields"], columns)
