"""Operations that only others make: what follows from them for a change of ours."""

from __future__ import annotations

from boathouse.lance.manifests.messages import DataOverlay
from boathouse.lance.operations.base import Operation, Pair, Theirs
from boathouse.table.verdict import Rebase, Verdict


class _Harmless(Operation):
    """Neither rows, nor the schema, nor properties change."""

    keeps_rows = True

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict:
        return Rebase()


class ReserveFragmentsOperation(_Harmless):
    """Ids are given away: the head's highest id says so."""

    name = "reserve_fragments"


class UpdateBasesOperation(_Harmless):
    """More places where files may be: the head names them."""

    name = "update_bases"


class DataOverlayOperation(Operation):
    """Cells of fragments got other values, and rows stay where they are. So what computes nothing from rows may follow,
    as overlays are in the fragments of the head."""

    name = "data_overlay"

    def touched(self, message: DataOverlay) -> frozenset[int]:
        return frozenset(group.fragment_id for group in message.groups)
