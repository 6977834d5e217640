"""One version of a Lance table, opened by number, by time, by tag, or as the newest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import pyarrow as pa

from boathouse.errors import (
    CorruptTableError,
    InvalidArgumentError,
    NotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from boathouse.lance.deletions.files import read_deletions
from boathouse.lance.fragments import fragment_batches, fragment_counts
from boathouse.lance.manifests import features
from boathouse.lance.manifests.check import check
from boathouse.lance.manifests.file import ManifestFile, parse
from boathouse.lance.manifests.messages import DataFragment, Manifest, Transaction
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import VersionFile, has_versions, list_versions, missing_version, recent
from boathouse.lance.paths import data_uri, deletion_root, table_version, transaction_uri
from boathouse.lance.refs.files import of_branch, of_main, read_ref
from boathouse.lance.schema import to_schema, with_written_blobs
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Location
from boathouse.table.missing_files import listed_again
from boathouse.table.refs import MAIN
from boathouse.table.sizes import SMALL_FILE, Sizes
from boathouse.table.snapshot import Capabilities, MapFunction
from boathouse.table.tally import Tally
from boathouse.types import DataType, Partitioning, Schema
from boathouse.types.data_types import children
from boathouse.types.partitioning import UNPARTITIONED

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt

CAPABILITIES: Final = Capabilities(partitions=False)


@dataclass(frozen=True)
class LanceSnapshot:
    """A parsed manifest. `identity` is the root: manifests contain no id of the table (see `newest`). `ref` is the tag
    or branch by whose name it was opened, `tagged` whether it is a tag. With `for_rows` blobs are those of the rows of
    a write (`types.blobs`)."""

    context: TableContext = field(repr=False)
    file: VersionFile
    document: ManifestFile
    ref: str | None = None
    tagged: bool = False
    replaced: str = ""
    for_rows: bool = False

    format = "lance"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @property
    def location(self) -> Location:
        return self.context.location

    @property
    def stores(self) -> Stores:
        return self.context.stores

    @property
    def manifest(self) -> Manifest:
        return self.document.manifest

    @property
    def version(self) -> int:
        return self.file.version

    @property
    def timestamp_ms(self) -> int:
        return self.manifest.timestamp.ms if self.manifest.timestamp else 0

    @property
    def identity(self) -> str:
        return self.location.uri + self.replaced

    @property
    def token(self) -> str:
        return self.file.key

    @cached_property
    def schema(self) -> Schema:
        found = to_schema(self.manifest.fields, self.manifest.schema_metadata, where=self.location.uri)
        return with_written_blobs(found, self.manifest.fields) if self.for_rows else found

    @property
    def partitioning(self) -> Partitioning:
        return UNPARTITIONED

    @property
    def properties(self) -> Mapping[str, str]:
        return self.manifest.config

    def files(
        self,
        columns: Sequence[tuple[str, ...]] = (),
        where: Expr | None = None,
        map: MapFunction | None = None,
        tally: Tally | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """FILES; there are no statistics, so only a constant `where` skips anything."""
        types = [type_at(self.schema, path) for path in columns]
        if where is not None and _never_true(where):
            if tally is not None:
                tally.skip(f"constant {where}", len(self.manifest.fragments))
            return
        yield from fragment_batches(self.manifest, self.location.uri, types, self.rows_of)

    def sizes(self, small: int = SMALL_FILE) -> Sizes:
        return Sizes.of((fragment_counts(self.manifest, f, self.rows_of) for f in self.manifest.fragments), small)

    def rows_of(self, fragment: DataFragment) -> int:
        """The rows of a fragment whose manifest does not record them, read from its first file."""
        if not fragment.files:
            raise CorruptTableError(f"fragment {fragment.id} has no data file", where=self.location.uri)
        uri = data_uri(self.manifest, fragment.files[0], self.location.uri)
        # Reading data files is not loaded for manifests of the last years, which record the numbers.
        from boathouse.lance.row_counts import count_rows  # noqa: PLC0415

        return count_rows(self.stores, uri, fragment.files[0], self.version, self.location.uri)

    def repaired(self) -> Self:
        """With the actual numbers of rows in every fragment, for a commit on a manifest whose numbers are not
        trusted."""
        manifest = self.manifest
        if manifest.writer_version is not None:
            return self
        fragments = tuple(self._repaired(f) for f in manifest.fragments)
        return replace(self, document=replace(self.document, manifest=replace(manifest, fragments=fragments)))

    def _repaired(self, fragment: DataFragment) -> DataFragment:
        deletion = fragment.deletion_file
        if deletion is not None:
            root = deletion_root(self.manifest, fragment, self.location.uri)
            deletion = replace(deletion, num_deleted_rows=len(read_deletions(self.stores, root, fragment)))
        return replace(fragment, physical_rows=self.rows_of(fragment), deletion_file=deletion)

    def detail(self) -> Mapping[str, Any]:
        m = self.manifest
        written_by = m.writer_version
        return {
            "data_version": table_version(m, self.location.uri),
            "naming": self.file.scheme,
            "reader_features": features.describe(m.reader_feature_flags),
            "writer_features": features.describe(m.writer_feature_flags),
            "writer": f"{written_by.library}/{written_by.version}" if written_by else None,
            "fragments": len(m.fragments),
            "max_fragment_id": m.max_fragment_id,
            "has_indices": self.document.index is not None,
            "table_metadata": dict(m.table_metadata),
            "branch": m.branch,
        }


S = TypeVar("S", bound=LanceSnapshot)


def _never_true(where: Expr) -> bool:
    from boathouse.expr.tree import Literal  # noqa: PLC0415

    return isinstance(where, Literal) and not where.value


def type_at(schema: Schema, path: tuple[str, ...]) -> DataType:
    """The type of the column or nested field at `path`."""
    found = schema.field(path[0])
    for name in path[1:]:
        found = Schema(children(found.type)).field(name)
    return found.type


def detect(context: TableContext) -> bool:
    """Whether there is a manifest in `_versions`."""
    if context.location.metadata is not None:
        return False
    return has_versions(context)


def load(context: TableContext, at: At, cls: type[S]) -> S:
    """Opens a version. Raises TableNotFoundError, VersionNotFoundError, CorruptTableError, UnsupportedFeatureError."""
    location = context.location
    if location.metadata is not None:
        raise InvalidArgumentError("a Lance table is opened by its folder", where=location.metadata)
    version = at.version
    if at.ref is not None and at.ref != MAIN:
        return _at_ref(context, at, at.ref, cls)
    if version is None and at.timestamp_ms is None:
        return listed_again(lambda: _open_newest(context, cls), location.uri, VersionNotFoundError)
    kept = list_versions(context)
    if not kept:
        raise _no_table(location)
    if version is None:
        assert at.timestamp_ms is not None
        return _at_time(context, at.timestamp_ms, kept, cls)
    found = next((v for v in kept if v.version == version), None)
    if found is None:
        raise missing_version(location, version, kept)
    return open_version(context, found, cls)


def _at_ref(context: TableContext, at: At, name: str, cls: type[S]) -> S:
    """The version of a tag, or the newest or another version of a branch."""
    tag = read_ref(context, name)
    if tag is None:
        return replace(load(of_branch(context, name), replace(at, ref=None), cls), ref=name)
    if at.pinned:
        raise InvalidArgumentError("a tag refers to one version: give either a tag, or a version or time")
    line = context if tag.branch in (None, MAIN) else of_branch(context, tag.branch or MAIN)
    return replace(load(line, At(version=tag.version), cls), ref=name, tagged=True)


def newest(snapshot: S, put: Attempt | None = None) -> S:
    """The newest version, also of a branch; the snapshot itself if its manifest is certainly still the newest. Of a
    tag, its version.

    A manifest has no id of its table: a different manifest at the snapshot's version, or no version as high, shows that
    the table was recreated, and then the `identity` is another one. `put`, an attempt that was prepared on the snapshot
    and put, is not read if it is the next manifest in the listing.
    """
    context = snapshot.context
    if snapshot.tagged:
        return load(of_main(context, snapshot.manifest.branch), At(ref=snapshot.ref), type(snapshot))
    listed = recent(context)
    if not listed:
        raise _no_table(context.location)
    if same_file(listed[0], snapshot.file):
        return replace(snapshot, for_rows=False) if snapshot.for_rows else snapshot
    made = _put_on(snapshot, put, listed)
    if made is not None:
        return made
    try:
        found = open_version(context, listed[0], type(snapshot))
    except VersionNotFoundError:  # cleaned up since the listing
        found = load(context, NEWEST, type(snapshot))
    recreated = f"#{found.manifest.transaction_file}" if _recreated(snapshot, found, listed) else ""
    return replace(found, replaced=snapshot.replaced + recreated, ref=snapshot.ref)


def _put_on(snapshot: S, put: Attempt | None, listed: Sequence[VersionFile]) -> S | None:
    """The snapshot of an attempt that the listing shows directly above the unchanged manifest it was prepared on. What
    a manifest store chose may be another's there in the end, and is read."""
    context, newest = snapshot.context, listed[0]
    if put is None or store_name(context) is not None or len(listed) < 2 or not same_file(listed[1], snapshot.file):
        return None
    uri = context.stores.resolve(context.location.uri)[0].uri(newest.key)
    if not put.shown_as(uri, newest.size):
        return None
    made = checked(context, newest, parse(put.body, where=uri), type(snapshot))
    return replace(made, replaced=snapshot.replaced, ref=snapshot.ref)


def _recreated(before: LanceSnapshot, found: LanceSnapshot, listed: Sequence[VersionFile]) -> bool:
    if found.version <= before.version:
        return found.version < before.version or found.document != before.document
    kept = listed if listed[-1].version <= before.version else list_versions(before.context)
    now = next((v for v in kept if v.version == before.version), None)
    if now is None or same_file(now, before.file):
        return False
    try:
        return read_manifest(before.context, now) != before.document
    except VersionNotFoundError:  # cleaned up since the listing
        return False


def same_file(a: VersionFile, b: VersionFile) -> bool:
    """Whether it is certainly the same object: manifests never change, and each has its own ETag in the store."""
    return a == b and a.etag is not None


def _open_newest(context: TableContext, cls: type[S]) -> S:
    listed = recent(context)
    if not listed:
        raise _no_table(context.location)
    return open_version(context, listed[0], cls)


def _at_time(context: TableContext, timestamp_ms: int, kept: Sequence[VersionFile], cls: type[S]) -> S:
    where = context.location.uri
    first = None
    for file in kept:
        try:
            first = open_version(context, file, cls)
        except VersionNotFoundError:  # cleaned up since the listing, and so are the older ones
            break
        if first.timestamp_ms <= timestamp_ms:
            return first
    if first is None:
        raise VersionNotFoundError("every version was removed concurrently", where=where)
    raise VersionNotFoundError(
        f"no version is as old as {timestamp_ms} ms", where=where,
        advice=f"the oldest retained is version {first.version} of {first.timestamp_ms} ms",
    )  # fmt: skip


def open_version(context: TableContext, file: VersionFile, cls: type[S]) -> S:
    """Reads one manifest, and refuses unsupported features."""
    return checked(context, file, read_manifest(context, file), cls)


def checked(context: TableContext, file: VersionFile, document: ManifestFile, cls: type[S]) -> S:
    """The snapshot of a manifest, if this version of the library can read it."""
    where = context.location.uri
    features.check_readable(document.manifest, where)
    check(document.manifest, context.stores.resolve(where)[0].uri(file.key))
    return cls(context, file, document)


def read_manifest(context: TableContext, file: VersionFile) -> ManifestFile:
    """Parses one manifest, whatever its features. Raises CorruptTableError if its version differs from its name."""
    storage, _ = context.stores.resolve(context.location.uri)
    where = storage.uri(file.key)
    try:
        data = storage.get(file.key)
    except NotFoundError as error:
        raise VersionNotFoundError(f"version {file.version} was removed concurrently", where=where) from error
    document = parse(data, where=where)
    if document.manifest.version != file.version:
        raise CorruptTableError(
            f"the manifest with the name of version {file.version} has version {document.manifest.version}", where=where
        )
    return document


def _no_table(location: Location) -> TableNotFoundError:
    return TableNotFoundError(
        "there is no Lance table here: `_versions` contains no manifest", where=location.uri, advice="check the path"
    )


def read_transaction(context: TableContext, document: ManifestFile) -> Transaction | None:
    """The transaction of a manifest's commit: its inline section, else its transaction file; None if it has neither."""
    if document.transaction is not None:
        return document.transaction
    uri = transaction_uri(document.manifest, context.location.uri)
    if uri is None:
        return None
    storage, key = context.stores.resolve(uri)
    try:
        return Transaction.decode(storage.get(key), where=uri)
    except NotFoundError:
        return None
