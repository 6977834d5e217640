"""The features of Lance tables; the modules behind one are loaded when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse.table import features

if TYPE_CHECKING:
    from boathouse.lance.adapter import LanceTable


Offered = features.Examination | features.LiveFiles | features.MetadataTables


def offered(snapshot: LanceTable, feature: type) -> Offered | None:
    """The feature of a version of a table."""
    match feature:
        case features.Examination:
            from boathouse.lance.examine import LanceExamination

            return LanceExamination(snapshot)
        case features.LiveFiles:
            from boathouse.lance.history import LanceLiveFiles

            return LanceLiveFiles(snapshot.context)
        case features.MetadataTables:
            from boathouse.lance.inspect import LanceTables

            return LanceTables(snapshot)
    return None
