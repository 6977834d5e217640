"""What every operation of a transaction is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.messages import DataFragment
from boathouse.table.change import Change
from boathouse.table.edits import SetTransaction
from boathouse.table.verdict import Verdict

if TYPE_CHECKING:
    from boathouse.lance.operations.build import Build
    from boathouse.lance.operations.pair import Pair


class Operation:
    """An operation as the transaction of a commit has it, by whomever. `name` is its field in Transaction."""

    name: ClassVar[str]
    begins_anew: ClassVar[bool] = False
    """Whether the table after it is another one, whatever was in it before."""
    keeps_rows: ClassVar[bool] = False
    """Whether the table has the same rows after it."""
    only_adds: ClassVar[bool] = False
    """Whether the rows of the fragments that it brings are all that it changes."""

    def touched(self, message: Any) -> frozenset[int]:
        """The fragments that it changed or removed, without new ones."""
        return frozenset()

    def brought(self, message: Any) -> Iterable[DataFragment]:
        """The fragments that it made, or gave other deletions; new ones have the id 0."""
        return ()

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict | None:
        """What it means to every change of ours that would follow it; None if that depends on ours."""
        return None


@dataclass(frozen=True, slots=True)
class Theirs:
    """A concurrent commit of an operation that is known."""

    version: int
    operation: Operation
    message: Any

    @property
    def touched(self) -> frozenset[int]:
        return self.operation.touched(self.message)


@dataclass(frozen=True, slots=True)
class Built:
    """The next manifest. `operation` is the one field of Transaction's oneof that is set; `side` are auxiliary files
    already written."""

    document: ManifestFile
    operation: dict[str, Any]
    side: tuple[str, ...] = ()


class OurOperation(Operation, ABC):
    """One that changes of ours become."""

    @abstractmethod
    def describes(self, change: Change) -> bool:
        """Whether it can say all that the change does."""

    @abstractmethod
    def build(self, build: Build) -> Built:
        """The manifest after the change, and the transaction's operation: a merge where rows come with new columns."""

    @abstractmethod
    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        """Whether it may follow theirs as it is."""


def kinds_of(change: Change) -> set[type]:
    """The kinds of a change's edits; application transactions go with every operation."""
    return {type(e) for e in change.edits} - {SetTransaction}


def ids_of(fragments: Iterable[DataFragment]) -> frozenset[int]:
    return frozenset(f.id for f in fragments)
