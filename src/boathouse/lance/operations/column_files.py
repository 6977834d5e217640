"""Fragments that get a data file with columns for the rows that they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from boathouse.errors import InvalidArgumentError
from boathouse.lance.file.fields import TOMBSTONE, Field
from boathouse.lance.lineage.sequences import one_version
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.messages import DataFile, DataFragment
from boathouse.lance.manifests.overlays import without_fields
from boathouse.lance.operations.build import Build
from boathouse.table.edits import AddColumnFiles


def with_column_files(build: Build, fields: Sequence[Field]) -> tuple[DataFragment, ...]:
    """The head's fragments with the files of columns that the change adds, in place of those that have the same fields,
    overlays too.    With stable row ids their rows count as changed by this commit, as pylance has it.

    Raises InvalidArgumentError if a fragment has none, or one with another number of rows.
    """
    found = [edit.outcomes for edit in build.change.all(AddColumnFiles)]
    if not found:
        return build.base.fragments
    outcomes = pa.concat_tables(found)
    units = outcomes.column("unit").to_pylist()
    made = dict(zip(units, build.fragments_of(outcomes, fields), strict=True))
    return tuple(_with_file(build, fragment, made.get(fragment.id)) for fragment in build.base.fragments)


def _with_file(build: Build, fragment: DataFragment, made: DataFragment | None) -> DataFragment:
    assert build.head is not None
    rows = fragment.physical_rows or build.head.rows_of(fragment)
    if made is None or made.physical_rows != rows:
        has = "no file" if made is None else f"a file of {made.physical_rows:,} rows"
        raise InvalidArgumentError(
            f"fragment {fragment.id} of {rows:,} rows with {has} of the new columns", where=build.root
        )
    new = {id for file in made.files for id in file.fields}
    files = (_without(file, new) for file in fragment.files)
    overlays = without_fields(fragment.overlays, new)
    fragment = replace(fragment, files=(*files, *made.files), physical_rows=rows, overlays=overlays)
    if not has_stable_row_ids(build.base):
        return fragment
    since = one_version(build.base.version + 1, rows)
    return replace(fragment, inline_updated=since, external_updated=None, column_updated=None)


def _without(file: DataFile, fields: set[int]) -> DataFile:
    """The file, in which these fields are no longer to be read."""
    if fields.isdisjoint(file.fields):
        return file
    return replace(file, fields=tuple(TOMBSTONE if id in fields else id for id in file.fields))
