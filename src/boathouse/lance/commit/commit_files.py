"""What one commit did to the fragments, as its transaction says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse.lance.fragments import fragment_batches
from boathouse.lance.manifests.messages import DataFragment, Transaction
from boathouse.lance.manifests.versions import manifest_uri, parse_name
from boathouse.lance.operations.known import operation_of
from boathouse.lance.options import NATIVE, NO_PARTITION
from boathouse.lance.snapshot import LanceSnapshot, read_manifest, read_transaction
from boathouse.table.features import CommitFiles
from boathouse.table.location import Version
from boathouse.table.units import deletes_schema, files_schema, stats_type
from boathouse.table.version import TableVersion


@dataclass(frozen=True, slots=True)
class LanceCommitRecords:
    """See `table.features.CommitRecords`."""

    snapshot: LanceSnapshot

    def commit_files(self, version: Version, layout: TableVersion) -> CommitFiles | None:
        """None where a transaction does not name every fragment whose rows it changed."""
        context = self.snapshot.context
        uri = manifest_uri(context.location, version, self.snapshot.file.scheme)
        file = parse_name(context.stores.resolve(uri)[1])
        assert file is not None
        document = read_manifest(context, file)
        transaction = read_transaction(context, document)
        if transaction is None or (added := _added(transaction)) is None:
            return None
        fragments = tuple(f for f in document.manifest.fragments if _place(f) in added)
        if len(fragments) < len(added):
            return None
        manifest = replace(document.manifest, fragments=fragments)
        batches = fragment_batches(manifest, context.location.uri, (), self.snapshot.rows_of)
        units = pa.Table.from_batches(batches, files_schema(NO_PARTITION, stats_type(()), NATIVE))
        return CommitFiles(units, deletes_schema().empty_table(), removed=False, layout_changed=False)


def _added(transaction: Transaction) -> frozenset[tuple[int | None, str]] | None:
    """The places of the fragments in which rows are new, if no row went."""
    known = operation_of(transaction)
    if known is None:
        return None
    operation, message = known
    if operation.only_adds:
        return frozenset(_place(f) for f in operation.brought(message))
    return frozenset() if operation.keeps_rows else None


def _place(fragment: DataFragment) -> tuple[int | None, str]:
    """Fragments get their ids when they are committed; their files have names of their own."""
    return fragment.files[0].base_id, fragment.files[0].path
