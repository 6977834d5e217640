"""Data files that no commit of the table wrote, as its files: their columns are found by the field ids that they have,
or by the table's name mapping, and must be the table's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import pyarrow as pa

from boathouse.errors import SchemaMismatchError
from boathouse.iceberg.data_files.writer import NATIVE, outcomes
from boathouse.iceberg.manifests.schemas import avro_name
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, NameMapping, mapping_of
from boathouse.iceberg.metadata.schema_rules import promotes
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.write import table_context
from boathouse.parquet.written_stats import LeafColumn, struct_of
from boathouse.table.edits import Edit, SetProperties
from boathouse.table.found_files import FooterGroup, FoundFiles, Path, Places
from boathouse.table.tasks import WriteContext
from boathouse.table.units import KIND_OF, PARQUET, outcome_rows
from boathouse.types import (
    DataType,
    Field,
    IntegerType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
)

_SMALL: Final = 16
"""Bits of whole numbers that Parquet stores as ints of 32, without a sign too."""


@dataclass(frozen=True, slots=True)
class IcebergAdoption:
    """See `table.features.Adoption`. `context` is that of new files; `named` are the names that each id has had; `new`:
    the table has no name mapping yet."""

    context: WriteContext
    mapping: NameMapping
    named: frozenset[tuple[int | None, str]]
    version: FormatVersion
    new: bool

    @classmethod
    def of(cls, table: IcebergSnapshot) -> IcebergAdoption:
        """Of a version of a table."""
        metadata = table.metadata
        text = metadata.properties.get(NAME_MAPPING)
        mapping = mapping_of(table.schema) if text is None else NameMapping.parse(text, table.token)
        named = _named(metadata.schemas.values())
        return cls(table_context(table, ""), mapping, named, metadata.format, text is None)

    @classmethod
    def of_new(cls, context: WriteContext, properties: Mapping[str, str], version: FormatVersion) -> IcebergAdoption:
        """Of a table to be created, which gets its name mapping by that."""
        text = properties.get(NAME_MAPPING)
        mapping = mapping_of(context.schema) if text is None else NameMapping.parse(text)
        return cls(context, mapping, _named([context.schema]), version, False)

    @property
    def edits(self) -> Sequence[Edit]:
        return (SetProperties({NAME_MAPPING: self.mapping.text()}),) if self.new else ()

    def places(self, group: FooterGroup) -> Places:
        """Raises SchemaMismatchError."""
        return _Fit(self, group).places()

    def adopted(self, files: FoundFiles) -> pa.Table:
        """Raises SchemaMismatchError."""
        spec, count = self.context.spec, len(files.uris)
        for f, values in zip(spec, files.partitions, strict=True):
            for leaf in files.leaves:
                if leaf.path == f.source:
                    _check_partition(leaf, values, files.uris)
        sizes = [list(row) for row in zip(*(leaf.sizes for leaf in files.leaves))]
        native = [
            pa.array(sizes or [[]] * count, NATIVE.field("column_sizes").type),
            files.offsets,
            pa.nulls(count, pa.int32()),
        ]
        schema = outcomes(self.context)
        type = schema.field("partition").type
        known = {
            "path": list(files.uris),
            "size": list(files.sizes),
            "rows": list(files.rows),
            "partition": pa.StructArray.from_arrays(files.partitions, fields=list(type))
            if spec.fields
            else [{}] * count,
            "stats": struct_of(files.leaves, count),
            "native": pa.StructArray.from_arrays(native, fields=list(NATIVE)),
        }
        found = outcome_rows(schema, KIND_OF["data"], PARQUET, spec.id, known)
        return found.set_column(schema.get_field_index("format"), schema.field("format"), files.formats)


def _named(schemas: Iterable[Schema]) -> frozenset[tuple[int | None, str]]:
    """The names that ids have in these schemas, and those that Java gives them in files."""
    both = {(f.id, name) for s in schemas for _, f in s.walk() for name in (f.name, avro_name(f.name))}
    return frozenset(both)


def _check_partition(leaf: LeafColumn, values: pa.Array, uris: Sequence[str]) -> None:
    """The rows of a file that has the column, too, must have the value that the metadata says: some readers take the
    one, some the other."""
    for i, uri in enumerate(uris):
        rows, nulls, value = leaf.values[i], leaf.nulls[i], values[i]
        if rows is None or rows == 0:
            continue
        if value.is_valid:
            fits = nulls == 0 and leaf.lower[i] == value and leaf.upper[i] == value
        else:
            fits = nulls == rows
        if not fits:
            said = f"between {leaf.lower[i]} and {leaf.upper[i]}" if leaf.lower[i].is_valid else "no known value"
            raise SchemaMismatchError(
                f"column `{'.'.join(leaf.path)}` has {said} in the file, and its folder says {value}",
                where=uri,
                advice="move the file to the folder of its rows, or write it without the column",
            )


@dataclass(frozen=True, slots=True)
class _Fit:
    """The files of a group beside the table."""

    table: IcebergAdoption
    group: FooterGroup

    def places(self) -> dict[Path, Path | None]:
        """Raises SchemaMismatchError."""
        schema = self.table.context.schema
        return dict(self._struct(schema.fields, self.group.schema.fields, (), (), self._by_file))

    @property
    def _by_file(self) -> bool:
        """Whether the files have ids of their own: then all readers go by them."""
        return any(f.id is not None for _, f in self.group.schema.walk())

    def _struct(
        self, wanted: Sequence[Field], have: Sequence[Field], above: Path, at: Path, by_file: bool
    ) -> Iterator[tuple[Path, Path]]:
        found = self._by_id(have, at, by_file)
        for f in wanted:
            path, own = (*above, f.name), found.get(f.id)
            if own is not None:
                yield from self._field(f, own, path, (*at, own.name), by_file)
            elif not f.nullable and not self._given(f, path):
                self._refuse(f"column `{'.'.join(path)}` must have values, and the file does not have it")

    def _by_id(self, have: Sequence[Field], at: Path, by_file: bool) -> Mapping[int | None, Field]:
        found: dict[int | None, Field] = {}
        for f in have:
            path = (*at, f.name)
            id = f.id if by_file else self.table.mapping.id_at(path)
            if id is None and not by_file and self.table.mapping.knows(path):
                continue
            name = ".".join(path)
            if id is None:
                advice = "add it to the table first: t.add_column(...)"
                self._refuse(f"the file has the column `{name}`, which the table does not have", advice)
            if by_file and (id, f.name) not in self.table.named:
                self._refuse(f"the file's column `{name}` has the field id {id}, which is another column's here")
            if id in found:
                self._refuse(f"`{found[id].name}` and `{f.name}` of the file are one column of the table")
            found[id] = f
        return found

    def _given(self, field: Field, path: Path) -> bool:
        """Whether a column that a file lacks has values all the same."""
        sources = {f.source for f in self.table.context.spec if f.transform.name == "identity"}
        return path in sources or field.metadata.get("initial-default") is not None

    def _field(self, wanted: Field, own: Field, path: Path, at: Path, by_file: bool) -> Iterator[tuple[Path, Path]]:
        self._check_nulls(wanted, own, path, at)
        match wanted.type, own.type:
            case StructType(fields), StructType(more):
                yield from self._struct(fields, more, path, at, by_file)
            case ListType(element), ListType(more):
                yield from self._struct([element], [more], path, at, by_file)
            case MapType(key, value), MapType(key2, value2):
                yield from self._struct([key, value], [key2, value2], path, at, by_file)
            case a, b:
                if not _fits(b, a, self.table.version):
                    self._refuse(f"`{'.'.join(at)}` is {b} in the file, and {a} in the table")
                yield path, at

    def _check_nulls(self, wanted: Field, own: Field, path: Path, at: Path) -> None:
        if wanted.nullable or not own.nullable:
            return
        stats = self.group.leaves.get(at)
        nulls = None if stats is None or len(at) > 1 else stats.field("nulls")
        for i, uri in enumerate(self.group.uris):
            if nulls is None or nulls[i].as_py() != 0:
                count = "may have nulls" if nulls is None or not nulls[i].is_valid else f"has {nulls[i]} nulls"
                raise SchemaMismatchError(
                    f"column `{'.'.join(path)}` must have values, and {count} in the file",
                    where=uri,
                    advice=f"make it nullable: t.set_nullable({'.'.join(path)!r})",
                )

    def _refuse(
        self, what: str, advice: str = "rewrite the file with the table's columns, or append its rows"
    ) -> NoReturn:
        raise SchemaMismatchError(what, where=self.group.uris[0], advice=advice)


def _fits(own: DataType, wanted: DataType, version: FormatVersion) -> bool:
    """Whether every reader reads a type of files as the table's."""
    match own, wanted:
        case IntegerType(bits), IntegerType(_, True) if bits <= _SMALL:
            return True
        case NullType(), _:
            return isinstance(wanted, NullType)
    return own == wanted or promotes(own, wanted, version)
