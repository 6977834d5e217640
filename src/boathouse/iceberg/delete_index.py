"""Which units of a plan a delete file applies to: by path, partition and sequence number (spec, "Scan Planning")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.iceberg.values import Physical, physical_list
from boathouse.types import Partitioning, PartitionSpec

Key = Physical | tuple[str]
Tuple = tuple[int, tuple[Key, ...]]
"""A partition spec and its values in order, which row deletes share with the files to which they apply."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a delete file applies to: files of its partition, by its sequence number; `unpartitioned` is its spec."""

    partition: Tuple
    sequence: int
    unpartitioned: bool

    @classmethod
    def of(cls, spec: PartitionSpec, values: Mapping[int, Physical], sequence: int) -> Place:
        partition = (spec.id, tuple(_same(values[f.id]) for f in spec))
        return cls(partition, sequence, all(f.transform.name == "void" for f in spec))


@dataclass(frozen=True, slots=True)
class Units:
    """The planned units by path and by partition."""

    rows: Mapping[str, int]
    sequences: Sequence[int]
    partitions: Sequence[Tuple]
    oldest_in: Mapping[Tuple, int]
    oldest: int

    @classmethod
    def of(cls, units: pa.Table, partitioning: Partitioning) -> Units:
        specs = {s.id: s for s in partitioning.specs}
        struct = units.column("partition").combine_chunks()
        types = {f.id: f.type for s in partitioning.specs for f in s}
        values = {id: physical_list(struct.field(str(id)), type) for id, type in types.items()}
        spec_ids = units.column("spec").to_pylist()
        partitions = [(s, tuple(_same(values[f.id][i]) for f in specs[s])) for i, s in enumerate(spec_ids)]
        sequences = units.column("sequence").to_pylist()
        oldest_in: dict[Tuple, int] = {}
        for partition, sequence in zip(partitions, sequences):
            oldest_in[partition] = min(sequence, oldest_in.get(partition, sequence))
        rows = {path: i for i, path in enumerate(units.column("path").to_pylist())}
        if len(rows) != units.num_rows:
            raise CorruptTableError("a data file is live twice in one snapshot")
        return cls(rows, sequences, partitions, oldest_in, min(sequences))

    def at(self, path: str, place: Place) -> int | None:
        """The unit that deleted positions of `path` apply to: of the same partition, not newer than they are."""
        row = self.rows.get(path)
        if row is None or self.partitions[row] != place.partition or self.sequences[row] > place.sequence:
            return None
        return row

    def touched(self, place: Place) -> bool:
        """Whether position deletes at this place can apply to any unit."""
        oldest = self.oldest_in.get(place.partition)
        return oldest is not None and oldest <= place.sequence

    def outdated(self, place: Place) -> bool:
        """Whether equality deletes at this place apply to any unit: they do to strictly older files only, and
        everywhere if their spec is unpartitioned."""
        oldest = self.oldest if place.unpartitioned else self.oldest_in.get(place.partition)
        return oldest is not None and oldest < place.sequence


def _same(value: Physical) -> Key:
    """A comparable partition value: all NaNs are equal, the two zeros are different."""
    if isinstance(value, float):
        return ("nan",) if value != value else (value.hex(),)
    return value
