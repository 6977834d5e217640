"""Shredding one value at a time, over trees instead of bytes: a slow second implementation of VariantShredding.md.

`Pair` is one (value, typed_value). `shred_tree` and `unshred_tree` are what the columns of
`boathouse.variant.shredding` are compared with; `pair_at` reads a row of such a column, `to_storage` makes a column
from any pairs, legal or not. Strategies for schemas need hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from boathouse.errors import MalformedVariant
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    DataType,
    DecimalType,
    TimestampType,
    TimeType,
)
from boathouse.variant import Variant, VariantBuilder
from boathouse.variant.shredding.schema import ShreddedArray, ShreddedObject, ShreddingSchema, storage_type
from makers.variants import Tree, encode, names, tree_of

TYPES: dict[str, DataType] = {
    "boolean": BOOLEAN, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "float": FLOAT,
    "double": DOUBLE, "date": DATE, "time": TimeType("us"), "timestamp": TIMESTAMP, "timestamp_ntz": TIMESTAMP_NTZ,
    "timestamp_nanos": TimestampType(True, "ns"), "timestamp_ntz_nanos": TimestampType(False, "ns"),
    "binary": BINARY, "string": STRING, "uuid": UUID,
}  # fmt: skip
_NAMES = {type: name for name, type in TYPES.items()}
_WIDE = Context(prec=60)
NULL = Tree("null", None)


@dataclass(frozen=True, slots=True)
class Pair:
    """`typed`: content of a primitive, tuple of Pairs of an array, or tuple of (name, Pair) of an object."""

    value: Tree | None
    typed: Any = None


MISSING = Pair(None)


def type_name(type: DataType) -> str:
    """The Variant type in a typed column of `type`."""
    if isinstance(type, DecimalType):
        return "decimal4" if type.precision <= 9 else "decimal8" if type.precision <= 18 else "decimal16"
    return _NAMES[type]


def shred_tree(tree: Tree | None, schema: ShreddingSchema) -> Pair:
    """How a writer stores one value; None is a missing value."""
    if tree is None:
        return MISSING
    match schema.typed:
        case None:
            return Pair(tree)
        case ShreddedObject(fields) if tree.type == "object":
            found = dict(tree.content)
            typed = tuple((name, shred_tree(found.pop(name, None), node)) for name, node in fields)
            return Pair(Tree("object", tuple(found.items())) if found else None, typed)
        case ShreddedArray(element) if tree.type == "array":
            return Pair(None, tuple(shred_tree(child, element) for child in tree.content))
        case DataType() as type if _fits(tree, type):
            return Pair(None, tree.content)
    return Pair(tree)


def _fits(tree: Tree, type: DataType) -> bool:
    if tree.type != type_name(type):
        return False
    if isinstance(type, DecimalType):
        unscaled, scale = tree.content
        return bool(scale == type.scale and abs(unscaled) < 10**type.precision)
    return True


def unshred_tree(pair: Pair, schema: ShreddingSchema, required: bool = True) -> Tree | None:
    """`construct_variant` of the specification; None is missing. Raises MalformedVariant."""
    value, typed = pair.value, pair.typed
    if typed is None:
        return NULL if value is None and required else value
    match schema.typed:
        case ShreddedObject(fields):
            nodes = dict(fields)
            found = {name: unshred_tree(child, nodes[name], False) for name, child in typed}
            rest: tuple[tuple[str, Tree], ...] = ()
            if value is not None:
                if value.type != "object":
                    raise MalformedVariant("partially shredded value must be an object")
                rest = tuple((name, child) for name, child in value.content if name not in nodes)
            both = [*((name, child) for name, child in found.items() if child is not None), *rest]
            return Tree("object", tuple(sorted(both, key=lambda pair: pair[0])))
        case ShreddedArray(element):
            if value is not None:
                raise MalformedVariant("shredded array must not conflict with variant value")
            return Tree("array", tuple(unshred_tree(child, element) for child in typed))
        case DataType() as type:
            if value is not None:
                raise MalformedVariant("shredded primitive must not conflict with variant value")
            return Tree(type_name(type), typed)
    raise AssertionError(schema)


def pair_at(scalar: pa.StructScalar, schema: ShreddingSchema, metadata: bytes | None = None) -> Pair | None:
    """A row of a shredded column; None for a null one."""
    if not scalar.is_valid:
        return None
    metadata = scalar["metadata"].as_py() if metadata is None else metadata
    value = scalar["value"] if schema.has_value else None
    tree = tree_of(Variant(metadata, value.as_py())) if value is not None and value.is_valid else None
    typed = scalar["typed_value"] if schema.typed is not None else None
    if typed is None or not typed.is_valid:
        return Pair(tree)
    match schema.typed:
        case ShreddedObject(fields):
            return Pair(tree, tuple((name, pair_at(typed[name], node, metadata) or MISSING) for name, node in fields))
        case ShreddedArray(element):
            found = typed.values
            return Pair(tree, tuple(pair_at(found[i], element, metadata) or MISSING for i in range(len(found))))
        case DataType() as type:
            return Pair(tree, _content(typed, type))
    raise AssertionError(schema)


def _content(scalar: pa.Scalar, type: DataType) -> Any:
    name = type_name(type)
    if isinstance(type, DecimalType):
        return int(scalar.as_py().scaleb(type.scale, _WIDE)), type.scale
    if name in ("float", "double"):
        return np.frombuffer(pa.array([scalar]).buffers()[1], np.uint8, 4 if name == "float" else 8).tobytes()
    if name == "uuid":
        return scalar.value.as_py() if isinstance(scalar, pa.ExtensionScalar) else scalar.as_py()
    return scalar.as_py() if name in ("boolean", "string", "binary") or name.startswith("int") else scalar.value


def to_storage(pairs: Sequence[Pair | None], schema: ShreddingSchema) -> pa.StructArray:
    """A column of the given pairs, legal or not; None is a null row. All rows share one dictionary."""
    builder = VariantBuilder()
    builder.begin_object()
    for name in sorted({name for pair in pairs if pair is not None for name in _names(pair)}):
        builder.key(name).append_null()
    metadata = builder.end().finish().metadata
    type = storage_type(schema)
    return _group([p or MISSING for p in pairs], schema, type, metadata, [p is not None for p in pairs])


def _names(pair: Pair) -> set[str]:
    found = _tree_names(pair.value) if pair.value is not None else set()
    if isinstance(pair.typed, tuple):
        for child in pair.typed:
            if isinstance(child, Pair):
                found |= _names(child)
            elif isinstance(child, tuple):
                found |= {child[0]} | _names(child[1])
    return found


def _tree_names(tree: Tree) -> set[str]:
    if tree.type == "object":
        return {name for name, _ in tree.content}.union(*(_tree_names(child) for _, child in tree.content))
    return set().union(*(_tree_names(child) for child in tree.content)) if tree.type == "array" else set()


def _group(
    pairs: list[Pair], schema: ShreddingSchema, type: pa.DataType, metadata: bytes, there: list[bool] | None
) -> pa.StructArray:
    columns = {"metadata": pa.array([metadata] * len(pairs), pa.binary())}
    values = [None if p.value is None else _encoded(p.value, metadata) for p in pairs]
    columns["value"] = pa.array(values, pa.binary())
    if schema.typed is not None:
        columns["typed_value"] = _typed(pairs, schema, type.field("typed_value").type, metadata)
    mask = None if there is None or all(there) else pa.array([not t for t in there], pa.bool_())
    return pa.StructArray.from_arrays([columns[f.name] for f in type], names=[f.name for f in type], mask=mask)


def _typed(pairs: list[Pair], schema: ShreddingSchema, type: pa.DataType, metadata: bytes) -> pa.Array:
    null = pa.array([p.typed is None for p in pairs], pa.bool_())
    match schema.typed:
        case ShreddedObject(fields):
            children = []
            for name, node in fields:
                below = [dict(p.typed)[name] if p.typed is not None else MISSING for p in pairs]
                children.append(_group(below, node, type.field(name).type, metadata, None))
            names_ = [name for name, _ in fields]
            return pa.StructArray.from_arrays(children, names=names_, mask=null)
        case ShreddedArray(element):
            counts = [0 if p.typed is None else len(p.typed) for p in pairs]
            items = [child for p in pairs if p.typed is not None for child in p.typed]
            elements = _group(items, element, type.value_type, metadata, None)
            offsets = pa.array([0, *np.cumsum(counts).tolist()], pa.int32())
            return pa.ListArray.from_arrays(offsets, elements, mask=null)
        case DataType() as held:
            return _primitives([p.typed for p in pairs], held, type)
    raise AssertionError(schema)


def _primitives(contents: list[Any], held: DataType, type: pa.DataType) -> pa.Array:
    if isinstance(held, DecimalType):
        return pa.array([None if c is None else Decimal(c[0]).scaleb(-c[1], _WIDE) for c in contents], type)
    name = type_name(held)
    if name in ("float", "double"):
        kind = np.dtype("<f4" if name == "float" else "<f8")
        raw = b"".join(bytes(kind.itemsize) if c is None else c for c in contents)
        mask = pa.array([c is not None for c in contents], pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(type, len(contents), [mask, pa.py_buffer(raw)])
    if name == "uuid":
        return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(contents, pa.binary(16)))
    return pa.array(contents, type)


def _encoded(tree: Tree, metadata: bytes) -> bytes:
    return VariantBuilder(metadata).append_variant(encode(tree)).finish().value


def primitive_types() -> SearchStrategy[DataType]:
    """All primitives of the specification's table."""
    decimals = st.integers(1, 38).flatmap(lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p)))
    return st.one_of(st.sampled_from(list(TYPES.values())), decimals)


def schemas(max_leaves: int = 8) -> SearchStrategy[ShreddingSchema]:
    """Any shredding schema, all with `value` columns."""

    def containers(children: SearchStrategy[ShreddingSchema]) -> SearchStrategy[ShreddingSchema]:
        fields = st.dictionaries(names(), children, min_size=1, max_size=4)
        return st.one_of(
            children.map(lambda child: ShreddingSchema(ShreddedArray(child))),
            fields.map(lambda found: ShreddingSchema(ShreddedObject(tuple(found.items())))),
        )

    leaves = st.one_of(st.just(ShreddingSchema()), primitive_types().map(ShreddingSchema))
    return st.recursive(leaves, containers, max_leaves=max_leaves)


@st.composite
def schemas_for(draw: DrawFn, tree: Tree | None) -> ShreddingSchema:
    """Schemas that fit much of a tree, so that values are actually typed."""
    if tree is None or draw(st.integers(0, 9)) == 0:
        return draw(schemas(3))
    if tree.type == "object":
        kept = [pair for pair in tree.content if draw(st.integers(0, 3))]
        fields = [(name, draw(schemas_for(child))) for name, child in kept]
        if draw(st.booleans()) or not fields:
            extra = draw(names())
            fields += [(extra, draw(schemas(2)))] if extra not in dict(fields) else []
        return ShreddingSchema(ShreddedObject(tuple(draw(st.permutations(fields))))) if fields else ShreddingSchema()
    if tree.type == "array":
        return ShreddingSchema(ShreddedArray(draw(schemas_for(tree.content[0] if tree.content else None))))
    if tree.type == "null":
        return ShreddingSchema(draw(primitive_types()))
    if tree.type.startswith("decimal"):
        _, scale = tree.content
        digits = {"decimal4": 9, "decimal8": 18, "decimal16": 38}[tree.type]
        return ShreddingSchema(DecimalType(digits, min(scale, digits)))
    return ShreddingSchema(TYPES[tree.type])
