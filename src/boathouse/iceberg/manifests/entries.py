"""The entries of a manifest as columns, with the values inherited from the manifest list (spec, "Manifests")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.avro import columns as avro_columns
from boathouse.avro import container as avro
from boathouse.avro.columns import Columns, at_places
from boathouse.avro.cursors import BEYOND, DamagedError, Longs, Path, Schema, in_64_bits, present
from boathouse.avro.small_files import FewColumns
from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests.kinds import ENTRY, check_content, check_schema
from boathouse.iceberg.manifests.records import ADDED, DELETED, Entry, ManifestFile
from boathouse.iceberg.manifests.schemas import ENTRY_NAMES, METRICS, avro_name
from boathouse.iceberg.manifests.values import Physical, arrow_array, from_avro
from boathouse.types import DataType, PartitionField, PartitionSpec

FILE: Final = "data_file"
FEW: Final = 64
"""A manifest with more entries is decoded by columns, a smaller one entry by entry, which is faster."""
_SWELL: Final = 20
"""How much larger than its file such a manifest is in memory, at most."""
PARTITION: Final = (FILE, "partition")
PATH: Final = (FILE, "file_path")
_NUMBERS: Final = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_OF_FILE: Final = (
    "content", "file_path", "file_format", "record_count", "file_size_in_bytes", "key_metadata", "first_row_id",
    "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds",
)  # fmt: skip
_REQUIRED: Final = (
    ("status",), PATH, (FILE, "file_format"), (FILE, "record_count"), (FILE, "file_size_in_bytes"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as its distinct values, and the number of that of each row."""

    values: Sequence[Physical]
    codes: Longs

    def take(self, rows: npt.NDArray[Any]) -> Coded:
        return Coded(self.values, self.codes[rows])

    def array(self, type: DataType) -> pa.Array:
        return arrow_array(self.values, type).take(pa.array(self.codes))


@dataclass(frozen=True)
class LiveFiles:
    """Files of a manifest, as a rule the live ones, checked; numbers are those after inheritance."""

    columns: Columns | FewColumns
    snapshot_id: Longs
    sequence: Longs
    file_sequence: Longs
    rows: Longs
    sizes: Longs

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: npt.NDArray[Any]) -> LiveFiles:
        numbers = (self.snapshot_id, self.sequence, self.file_sequence, self.rows, self.sizes)
        return LiveFiles(self.columns.take(rows), *(n[rows] for n in numbers))

    def whole(self) -> LiveFiles:
        """The same, with every field of the entries. Raises CorruptTableError."""
        columns = self.columns
        if isinstance(columns, FewColumns):
            return self
        try:
            with avro.decoding(columns.where):
                places = at_places(columns.buffer, columns.schema, _wanted(columns.schema, True), columns.starts)
        except DamagedError as error:
            raise CorruptTableError(f"a manifest cannot be decoded: {error}", where=columns.where) from None
        return replace(self, columns=replace(columns, places=places))

    def paths(self) -> pa.Array:
        """As recorded."""
        return self.columns.strings(PATH)

    def formats(self) -> Coded:
        return Coded(*self.columns.distinct((FILE, "file_format")))

    def metric(self, name: str, ids: Sequence[int]) -> Mapping[int, pa.Array]:
        """The values of these columns in a metric map; a missing map or key is null: unknown, not zero."""
        return self.columns.pairs((FILE, name), ids)

    def partition(self, spec: PartitionSpec) -> Mapping[int, Coded]:
        """Partition values by field id, physical; those of an unknown transform as strings. Raises
        CorruptTableError."""
        return {f.id: self._partition(f) for f in spec}

    def partition_array(self, field: PartitionField) -> pa.Array:
        """The values of one partition field, in the type of its result. Raises CorruptTableError."""
        return self._partition(field).array(field.type)

    def _partition(self, field: PartitionField) -> Coded:
        nothing = Coded([None], np.zeros(len(self), np.int64))
        if field.transform.name == "void" or not len(self):
            return nothing
        where = self.columns.where
        names = (f"f{field.recorded_id}", field.name, avro_name(field.name))
        path = next((p for n in names if self.columns.type(p := (*PARTITION, n)) is not None), None)
        if path is None or not self.columns.known(PARTITION).all():
            if field.transform.name == "unknown":
                return nothing
            raise CorruptTableError(f"a manifest entry lacks the value of partition field `{field.name}`", where=where)
        values, codes = self.columns.distinct(path)
        if field.transform.name == "unknown":
            return Coded([None if v is None else str(v) for v in values], codes)
        try:
            return Coded([from_avro(v, field.type) for v in values], codes)
        except ValueError as error:
            raise CorruptTableError(f"partition field `{field.name}` has a value that {error}", where=where) from None


@dataclass(frozen=True)
class Entries:
    """A decoded manifest."""

    columns: Columns | FewColumns
    source: ManifestFile
    where: str

    @classmethod
    def read(cls, data: bytes, source: ManifestFile, where: str) -> Entries:
        """Raises CorruptTableError, UnsupportedFeatureError."""
        opened = Opened.of(data, source, where)
        if opened.count > FEW:
            found = avro_columns.read(opened.container, opened.schema, _wanted(opened.schema), PATH)
            return cls(found, source, where)
        return opened.few(len(data))

    def listed_as(self, source: ManifestFile) -> Entries:
        """The same under another row of a manifest list. Raises CorruptTableError if its content is another."""
        check_content(("data", "deletes")[self.source.content], source.content, self.where)
        return Entries(self.columns, source, self.where)

    def records(
        self,
        live_only: bool = True,
        metrics: frozenset[str] = METRICS,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> list[Entry]:
        """The entries as dictionaries; metric maps that are not in `metrics` are None. `kept`: of the live ones these
        only."""
        columns = self.columns
        if live_only and columns.type(("status",)) is not None:
            columns = columns.take(columns.longs(("status",))[0] != DELETED)
        if kept is not None:
            columns = columns.take(kept)
        found = columns.records(METRICS - metrics)
        return manifests.inherited(found, self.source, self.where, live_only)

    @cached_property
    def live(self) -> LiveFiles:
        """The live files. Raises CorruptTableError and UnsupportedFeatureError for entries that break the rules."""
        return self.files()

    def files(self, live_only: bool = True) -> LiveFiles:
        """The files of all entries, or of the live ones. Raises what `live` raises."""
        columns, source = self.columns, self.source
        status, known = columns.longs(("status",))
        dead = known & (status == DELETED)
        if live_only and dead.any():
            columns, status = columns.take(~dead), status[~dead]
        numbers = [columns.longs((name,)) for name in _NUMBERS[1:]]
        inherits = (status == ADDED) | (source.sequence == 0)
        # A manifest of version 1 has sequence number 0, and so have all its entries.
        fit = (status >= 0) & (status <= DELETED) & (inherits | (numbers[1][1] & numbers[2][1]))
        defaults = (in_64_bits(source.snapshot_id), source.sequence, source.sequence)
        snapshot, sequence, file_sequence = (np.where(v, n, d) for (n, v), d in zip(numbers, defaults))
        rows, sizes = (columns.longs((FILE, name))[0] for name in ("record_count", "file_size_in_bytes"))
        for number in (sequence, file_sequence, rows, sizes):
            fit &= number >= 0
        if not source.content:
            fit &= snapshot != BEYOND
        found = LiveFiles(columns, snapshot, sequence, file_sequence, rows, sizes)
        if not (fit & self._complete(columns)).all():
            self.records(live_only)
            raise CorruptTableError("an entry of the manifest breaks the rules of the specification", where=self.where)
        return found

    def _complete(self, columns: Columns | FewColumns) -> npt.NDArray[np.bool_]:
        """Which entries have what is required, and a content that belongs into this manifest, not encrypted."""
        fit = np.ones(len(columns), np.bool_)
        for path in _REQUIRED:
            fit &= columns.known(path)
        content = columns.longs((FILE, "content"))[0]
        fit &= (content == 1) | (content == 2) if self.source.content else content == 0
        if columns.known((FILE, "key_metadata")).any():
            fit &= np.array([not k for k in columns.values((FILE, "key_metadata"))], np.bool_)
        return fit


@dataclass(frozen=True, slots=True)
class Opened:
    """A manifest that is parsed, and whose entries are not decoded."""

    container: avro.Container
    schema: Schema
    source: ManifestFile
    where: str

    @classmethod
    def of(cls, data: bytes, source: ManifestFile, where: str) -> Opened:
        """Raises CorruptTableError, UnsupportedFeatureError."""
        container = avro.parse(data, where)
        check_content(container.text("content"), source.content, where)
        schema = avro.by_ids(container.schema, ENTRY_NAMES, where)
        check_schema(schema, ENTRY, where)
        return cls(container, schema, source, where)

    @property
    def count(self) -> int:
        return sum(count for count, _ in self.container.blocks)

    def few(self, size: int) -> Entries:
        """The entries decoded one by one, from a file of this size."""
        rows = [row for block in avro.records(self.container, self.schema) for row in block]
        return Entries(FewColumns(rows, self.schema, size * _SWELL, self.where), self.source, self.where)

    def many(self) -> Many:
        return Many(list(avro.payloads(self.container, self.schema)), self.schema, self.source, self.where)


@dataclass(frozen=True, slots=True)
class Many:
    """The decompressed blocks of a manifest."""

    blocks: Sequence[tuple[int, bytes]]
    schema: Schema
    source: ManifestFile
    where: str

    @property
    def size(self) -> int:
        return sum(len(data) for _, data in self.blocks)


def decoded_together(manifests: Sequence[Many], every: bool) -> list[Entries]:
    """Manifests of one schema with their payloads, decoded together, with the places of the fields that FILES are made
    from, or of `every` one: a step over many blocks costs little more than one over a few. Raises CorruptTableError."""
    schema = manifests[0].schema
    try:
        blocks = [block for m in manifests for block in m.blocks]
        found = avro_columns.decoded(blocks, schema, _wanted(schema, every), manifests[0].where, PATH)
    except CorruptTableError:
        if len(manifests) == 1:
            raise
        return [entries for m in manifests for entries in decoded_together([m], every)]
    ends = np.cumsum([sum(count for count, _ in m.blocks) for m in manifests])
    done = []
    for m, begin, end in zip(manifests, (0, *ends[:-1].tolist()), ends.tolist()):
        columns = replace(found.take(np.arange(begin, end)), where=m.where)
        done.append(Entries(columns, m.source, m.where))
    return done


def _wanted(schema: Schema, every: bool = False) -> frozenset[Path]:
    """The fields whose places are noted: all, or those that FILES are made from."""
    fields = {f["name"]: f["type"] for f in schema["fields"]}
    of_file = present(fields.get(FILE, "null"))
    inside = {f["name"]: present(f["type"]) for f in of_file["fields"]} if isinstance(of_file, dict) else {}
    partition = inside.get("partition")
    names = [f["name"] for f in partition["fields"]] if isinstance(partition, dict) else []
    paths: list[Path] = [(n,) for n in _NUMBERS if n in fields]
    paths += [(FILE, n) for n in (inside if every else _OF_FILE) if n in inside and n != "partition"]
    paths += [PARTITION] if partition is not None else []
    return frozenset([*paths, *((*PARTITION, n) for n in names)])
