"""Sort orders (spec, "Sorting"): the one that new files should have, with its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from boathouse.iceberg.metadata.partitions import parse_transform
from boathouse.iceberg.metadata.rules import default_sort_order
from boathouse.iceberg.metadata.schemas import by_id
from boathouse.types import Schema, SortField

UNSORTED: Final = 0
_KEEPS_ORDER: Final = frozenset({"identity", "truncate", "year", "month", "day", "hour"})


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An order of rows by its parts, first to last. `whole`: every part is known, so that rows can be put in it."""

    id: int
    fields: tuple[SortField, ...]
    whole: bool = True

    @property
    def bounded(self) -> frozenset[str]:
        """The columns, by their paths joined with dots, whose values the order keeps together."""
        return frozenset(".".join(f.source) for f in self.fields if f.transform.name in _KEEPS_ORDER)


def wanted_order(document: Mapping[str, Any], schema: Schema) -> SortOrder:
    """The default sort order, as far as its columns are in the schema and its transforms are known."""
    return _order(default_sort_order(document), schema)


def known_orders(document: Mapping[str, Any], schema: Schema) -> list[SortOrder]:
    """All sort orders of the table that rows of the schema can be put in, the default one last."""
    found = [_order(order, schema) for order in (*document["sort-orders"], default_sort_order(document))]
    return [order for order in found if order.whole]


def _order(order: Mapping[str, Any], schema: Schema) -> SortOrder:
    paths = {id: path for id, (path, _) in by_id(schema).items()}
    fields = []
    for f in order["fields"]:
        path, transform = paths.get(f.get("source-id")), parse_transform(f["transform"])
        if path is not None and transform.name not in ("unknown", "void"):
            fields.append(SortField(path, transform, f["direction"] == "desc", f["null-order"] == "nulls-first"))
    return SortOrder(int(order["order-id"]), tuple(fields), len(fields) == len(order["fields"]))
