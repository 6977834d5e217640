"""Which units of a plan a delete file applies to: by path, partition and sequence number (spec, "Scan Planning")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.values import Physical, physical_list
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
    """The planned units by path and by partition; `numbers` are those of the partitions in `partition_of`."""

    rows: Mapping[str, int]
    sequences: npt.NDArray[np.int64]
    partition_of: npt.NDArray[np.int64]
    numbers: Mapping[Tuple, int]
    oldest_in: Mapping[Tuple, int]

    @classmethod
    def of(cls, units: pa.Table, partitioning: Partitioning) -> Units:
        specs = {s.id: s for s in partitioning.specs}
        struct = units.column("partition").combine_chunks()
        types = {f.id: f.type for s in partitioning.specs for f in s}
        values = {id: physical_list(struct.field(str(id)), type) for id, type in types.items()}
        spec_ids = units.column("spec").to_pylist()
        partitions = [(s, tuple(_same(values[f.id][i]) for f in specs[s])) for i, s in enumerate(spec_ids)]
        sequences = units.column("sequence").to_pylist()
        numbers: dict[Tuple, int] = {}
        oldest_in: dict[Tuple, int] = {}
        for partition, sequence in zip(partitions, sequences):
            numbers.setdefault(partition, len(numbers))
            oldest_in[partition] = min(sequence, oldest_in.get(partition, sequence))
        rows = {path: i for i, path in enumerate(units.column("path").to_pylist())}
        if len(rows) != units.num_rows:
            raise CorruptTableError("a data file is live twice in one snapshot")
        which = np.array([numbers[p] for p in partitions], np.int64)
        return cls(rows, np.array(sequences, np.int64), which, numbers, oldest_in)

    def at(self, path: str, place: Place) -> int | None:
        """The unit that deleted positions of `path` apply to: of the same partition, not newer than they are."""
        row = self.rows.get(path)
        if row is None or self.partition_of[row] != self.numbers.get(place.partition, -1):
            return None
        return row if self.sequences[row] <= place.sequence else None

    def touched(self, place: Place) -> bool:
        """Whether position deletes at this place can apply to any unit."""
        oldest = self.oldest_in.get(place.partition)
        return oldest is not None and oldest <= place.sequence

    def not_after(self, place: Place) -> npt.NDArray[np.bool_]:
        """Which units position deletes at this place may apply to."""
        mine = self.partition_of == self.numbers.get(place.partition, -1)
        return mine & (self.sequences <= place.sequence)

    def older(self, place: Place) -> npt.NDArray[np.bool_]:
        """Which units equality deletes at this place apply to: strictly older ones of their partition, and of every
        one if their spec is unpartitioned."""
        found: npt.NDArray[np.bool_] = self.sequences < place.sequence
        if not place.unpartitioned:
            found = found & (self.partition_of == self.numbers.get(place.partition, -1))
        return found


def _same(value: Physical) -> Key:
    """A comparable partition value: all NaNs are equal, the two zeros are different."""
    if isinstance(value, float):
        return ("nan",) if value != value else (value.hex(),)
    return value
