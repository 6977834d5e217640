"""Operations that only others write: what follows from them for a change of ours."""

from __future__ import annotations

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
