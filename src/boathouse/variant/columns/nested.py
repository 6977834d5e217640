"""Located objects and arrays as Arrow structs, maps and lists, by the rules of `boathouse.variant.cast`.

The values are read level by level (`expand`); building recurses over the type only. Rows that a full reading refuses
are cast by the single-value implementation, which reports the fault, or reads the values that are not affected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_field, to_arrow_type
from boathouse.arrow.vector import ragged
from boathouse.bits.unaligned import Ints, Mask
from boathouse.errors import EvaluationError
from boathouse.types import DataType, Field, FixedSizeListType, ListType, MapType, StructType, VariantType
from boathouse.variant.columns.byte_slices import LIMIT, as_text, validity
from boathouse.variant.columns.casts import byte_runs, cast_one, take
from boathouse.variant.columns.expand import Faulty, Tree, expand
from boathouse.variant.columns.nodes import ARRAY, OBJECT, Nodes
from boathouse.variant.primitives import NULL
from boathouse.variant.value import Variant


def nested(nodes: Nodes, type: DataType, safe: bool, place: Ints | None, rows: int) -> pa.Array:
    """The nodes as a list, struct or map type: `rows` entries, node k at `place[k]`, all others null.

    EvaluationError for what cannot be cast, which is null if `safe`; MalformedVariant, UnsupportedFeatureError.
    """
    values = nodes.as_column()
    left, single = np.arange(len(nodes)), []
    while True:
        try:
            tree = expand(values, left)
            break
        except Faulty as found:
            single.append(left[found.rows])
            left = np.delete(left, found.rows)
    parts = [_Builder(tree, nodes.take(left), safe).build(type)]
    spots = [left]
    if single:
        one_by_one = np.concatenate(single)
        spots.append(one_by_one)
        found_values = [cast_one(nodes, int(k), type, safe, _plain) for k in one_by_one]
        parts.append(_stored(found_values, type))
    return _placed(parts, spots, place, rows, to_arrow_type(type))


def _placed(parts: list[pa.Array], spots: list[Ints], place: Ints | None, rows: int, type: pa.DataType) -> pa.Array:
    spot = np.concatenate(spots)
    spot = spot if place is None else place[spot]
    whole = parts[0] if len(parts) == 1 else pa.concat_arrays([_alike(part, type) for part in parts])
    if len(parts) == 1 and len(whole) == rows:
        return whole
    source = np.full(rows, -1, np.int64)
    source[spot] = np.arange(len(spot))
    return whole.take(pa.array(source, mask=source < 0))


def _alike(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


class _Builder:
    """Arrays of the values of one tree; the rows of the tree are `roots`, node for node."""

    def __init__(self, tree: Tree, roots: Nodes, safe: bool) -> None:
        self.tree, self.roots, self.safe = tree, roots, safe
        self.type: DataType

    def build(self, type: DataType) -> pa.Array:
        self.type = type
        count = len(self.roots)
        return self.make(np.arange(count), type, None, count)

    def make(self, which: Ints, type: DataType, place: Ints | None, rows: int) -> pa.Array:
        """The values at `which` of the tree as `type`: `rows` entries, value k at `place[k]`, all others null."""
        match type:
            case VariantType():
                return self.variants(which, place, rows)
            case ListType(element):
                return self.lists(which, type, element, place, rows)
            case FixedSizeListType(element, _):
                return self.vectors(which, type, element, place, rows)
            case MapType():
                return self.maps(which, type, place, rows)
            case StructType(fields):
                return self.structs(which, type, fields, place, rows)
        return take(self.nodes(which), type, self.safe, place, rows)

    def nodes(self, which: Ints) -> Nodes:
        roots, tree = self.roots, self.tree
        row = tree.row[which]
        return Nodes(roots.column, roots.row[row], tree.pos[which], tree.end[which], roots.faults)

    def those(self, which: Ints, place: Ints | None, rows: int, kind: int, ok: Mask | None = None) -> tuple[Ints, Ints]:
        """The values of one kind (and `ok`) and their positions; others that are not null fail."""
        kinds = self.tree.kind[which]
        good = kinds == kind if ok is None else (kinds == kind) & ok
        bad = np.flatnonzero(~good & (kinds != NULL))
        if len(bad) and not self.safe:
            # The error names the path from the root on.
            cast_one(self.roots, int(self.tree.row[which[bad[0]]]), self.type, False)
        spot = np.arange(rows) if place is None else place
        return which[good], spot[good]

    def below(self, boxes: Ints) -> tuple[Ints, Ints]:
        """All children of containers, and which container each belongs to."""
        owner, slot = ragged(self.tree.count[boxes])
        return self.tree.first[boxes][owner] + slot, owner

    def lists(self, which: Ints, type: ListType, element: Field, place: Ints | None, rows: int) -> pa.Array:
        boxes, spot = self.those(which, place, rows, ARRAY)
        order = np.argsort(spot, kind="stable")
        boxes, spot = boxes[order], spot[order]
        children, _ = self.below(boxes)
        values = self.make(children, element.type, None, len(children))
        offsets, valid = self.offsets(boxes, spot, rows)
        kind = pa.list_(to_arrow_field(element).with_type(values.type))
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(offsets)], children=[values])

    def offsets(self, boxes: Ints, spot: Ints, rows: int) -> tuple[npt.NDArray[np.int32], pa.Buffer | None]:
        counts = np.zeros(rows + 1, np.int64)
        counts[spot + 1] = self.tree.count[boxes]
        return np.cumsum(counts).astype(np.int32), validity(spot, rows)

    def vectors(self, which: Ints, type: FixedSizeListType, element: Field, place: Ints | None, rows: int) -> pa.Array:
        boxes, spot = self.those(which, place, rows, ARRAY, self.tree.count[which] == type.size)
        children, owner = self.below(boxes)
        slot = children - self.tree.first[boxes][owner]
        values = self.make(children, element.type, spot[owner] * type.size + slot, rows * type.size)
        kind = pa.list_(to_arrow_field(element).with_type(values.type), type.size)
        return pa.Array.from_buffers(kind, rows, [validity(spot, rows)], children=[values])

    def maps(self, which: Ints, type: MapType, place: Ints | None, rows: int) -> pa.Array:
        boxes, spot = self.those(which, place, rows, OBJECT)
        order = np.argsort(spot, kind="stable")
        boxes, spot = boxes[order], spot[order]
        children, _ = self.below(boxes)
        names = as_text(self.tree.names.raw).cast(pa.string())
        _fits(names, self.tree.name[children], "keys")
        keys = names.take(pa.array(self.tree.name[children]))
        items = self.make(children, type.value.type, None, len(children))
        offsets, valid = self.offsets(boxes, spot, rows)
        item_field = to_arrow_field(type.value).with_type(items.type)
        kind = pa.map_(to_arrow_field(type.key).with_nullable(False), item_field)
        entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(offsets)], children=[entries])

    def structs(
        self, which: Ints, type: StructType, fields: tuple[Field, ...], place: Ints | None, rows: int
    ) -> pa.Array:
        boxes, spot = self.those(which, place, rows, OBJECT)
        children, owner = self.below(boxes)
        spot_of = spot[owner]
        arrays = []
        parts = dict(self.by_name(children))
        empty = np.zeros(0, np.int64)
        for field in fields:
            some = parts.get(field.name, empty)
            arrays.append(self.make(children[some], field.type, spot_of[some], rows))
        kinds = [to_arrow_field(f).with_type(a.type).with_nullable(True) for f, a in zip(fields, arrays)]
        valid = validity(spot, rows)
        return pa.Array.from_buffers(pa.struct(kinds), rows, [valid], children=arrays)

    def by_name(self, children: Ints) -> Iterator[tuple[str, Ints]]:
        """For each name that occurs, the children that have it."""
        rank = self.tree.name[children]
        order = np.argsort(rank, kind="stable")
        ranks, starts = np.unique(rank[order], return_index=True)
        words = self.tree.names.raw.take(pa.array(ranks)).to_pylist()
        for word, some in zip(words, np.split(order, starts[1:])):
            yield word.decode(), some

    def variants(self, which: Ints, place: Ints | None, rows: int) -> pa.Array:
        nodes = self.nodes(which)
        values = byte_runs(nodes, nodes.pos, nodes.end)
        metadata = nodes.column.metadata_array()
        _fits(metadata, nodes.row, "metadata")
        metadata = metadata.take(pa.array(nodes.row))
        kind = [pa.field("metadata", metadata.type, False), pa.field("value", values.type, False)]
        whole = pa.StructArray.from_arrays([metadata, values], fields=kind)
        return _placed([whole], [np.arange(len(which))], place, rows, whole.type)


def _fits(texts: pa.Array, which: npt.NDArray[Any], what: str) -> None:
    """Raises EvaluationError if the strings `which` have more bytes together than an array holds."""
    total = int(pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)[which].sum())
    if total > LIMIT:
        raise EvaluationError(f"{total:,} bytes of {what} in one column", advice="extract fewer rows, or parts of them")


def _plain(value: Any, type: DataType) -> Any:
    """A value of `cast_exact` as `pa.array` takes it."""
    if value is None:
        return None
    match type:
        case ListType(element) | FixedSizeListType(element, _):
            return [_plain(one, element.type) for one in value]
        case MapType(_, item):
            return [(name, _plain(one, item.type)) for name, one in value.items()]
        case StructType(fields):
            return {f.name: _plain(value[f.name], f.type) for f in fields}
        case VariantType():
            assert isinstance(value, Variant)
            return {"metadata": value.metadata, "value": value.value}
    return value


def _stored(values: list[Any], type: DataType) -> pa.Array:
    """Built as `pa.array` does, which takes the integers of dates and times as they are."""
    return pa.array(values, to_arrow_type(type))
