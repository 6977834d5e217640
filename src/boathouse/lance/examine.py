"""Everything that is wrong with a version of a Lance table, and with the manifests of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boathouse.errors import CorruptTableError
from boathouse.lance.manifests.check import findings
from boathouse.lance.manifests.versions import list_versions
from boathouse.lance.scan import plan
from boathouse.lance.snapshot import LanceSnapshot, read_manifest
from boathouse.table.examined import lost_files, unplanned
from boathouse.table.features import Depth
from boathouse.table.findings import Finding, placed


@dataclass(frozen=True, slots=True)
class LanceExamination:
    """See `table.features.Examination`."""

    snapshot: LanceSnapshot

    def examine(self, depth: Depth = "metadata") -> Iterator[Finding]:
        yield from self._manifests()
        found = list(unplanned(self.snapshot.format, lambda: plan(self.snapshot)))
        yield from found
        if depth == "files" and not found:
            yield from lost_files(self.snapshot)

    def _manifests(self) -> Iterator[Finding]:
        """Those of every version that is there."""
        context = self.snapshot.context
        storage, _ = context.stores.resolve(context.location.uri)
        for version in list_versions(context):
            try:
                document = read_manifest(context, version)
            except CorruptTableError as error:
                yield Finding.of("lance.manifest", error)
            else:
                yield from placed(findings(document.manifest), storage.uri(version.key))
