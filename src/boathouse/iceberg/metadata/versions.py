"""The versions of the format: what each requires of metadata, and how its manifests and manifest lists look.

Nothing else knows what a version has: who writes a table asks the version of its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.manifests.schemas import manifest, manifest_list
from boathouse.types import PartitionSpec

Json = dict[str, Any]
RowDeletes = Literal["positions", "equality", "vectors"]
NEXT_ROW_ID: Final = "next-row-id"
_REQUIRED: Final = (
    "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "schemas",
    "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
    "default-sort-order-id",
)  # fmt: skip
ONLY_IN_VERSION_1: Final = ("schema", "partition-spec")
"""Fields that repeat the current schema and spec; later versions leave them out."""
_IN_VERSION_1: Final = ("location", "last-updated-ms", "last-column-id", *ONLY_IN_VERSION_1)


@dataclass(frozen=True, slots=True)
class FormatVersion:
    """One version of the format.

    `required` are the fields of a metadata document that it must have. With `sequence_numbers` commits are counted,
    and with `row_lineage` rows have ids, which the document's `next-row-id` continues. `deletes` are the kinds of row
    deletes that writers may add; readers accept those of every earlier version.
    """

    number: int
    required: tuple[str, ...]
    sequence_numbers: bool
    row_lineage: bool
    deletes: frozenset[RowDeletes]

    def __str__(self) -> str:
        return str(self.number)

    def manifest_list(self) -> dict[str, Any]:
        """The Avro schema of its manifest lists."""
        return manifest_list(self.number)

    def manifest(self, spec: PartitionSpec) -> dict[str, Any]:
        """The Avro schema of its manifests of files of this spec."""
        return manifest(spec, self.number)

    def new_fields(self) -> Json:
        """What the document of a new table starts counting from."""
        counted: Json = {"last-sequence-number": 0}
        return {**counted, NEXT_ROW_ID: 0} if self.row_lineage else counted

    def stored(self, document: Json) -> Json:
        """A document as this version stores it: version 1 counts no commits, and repeats the current schema and spec
        under the names that its first readers know."""
        if self.sequence_numbers:
            return document
        found = {k: v for k, v in document.items() if k != "last-sequence-number"}
        if document.get("snapshots"):
            found["snapshots"] = [{k: v for k, v in s.items() if k != "sequence-number"} for s in document["snapshots"]]
        found["schema"] = _current(document, "schemas", "schema-id", "current-schema-id")
        found["partition-spec"] = _current(document, "partition-specs", "spec-id", "default-spec-id")["fields"]
        return found


def _current(document: Json, many: str, key: str, current: str) -> Json:
    found: Json = next(member for member in document[many] if member[key] == document[current])
    return found


VERSIONS: Final[Mapping[int, FormatVersion]] = {
    1: FormatVersion(1, _IN_VERSION_1, False, False, frozenset()),
    2: FormatVersion(2, _REQUIRED, True, False, frozenset({"positions", "equality"})),
    3: FormatVersion(3, (*_REQUIRED, NEXT_ROW_ID), True, True, frozenset({"vectors", "equality"})),
}
NEW: Final = VERSIONS[2]
"""What a table has that is created without a word about it."""
SEEN: Final = VERSIONS[2]
"""What documents of version 1 are completed to have when they are read."""
MODERN: Final = VERSIONS[3]
"""What the profile `modern` asks for."""
PROPERTY: Final = "format-version"
"""Under this name users ask for a version where they give properties; the document has it as a field of its own."""


def version_of_format(number: object) -> FormatVersion:
    """Raises UnsupportedFeatureError for a version that is not known."""
    found = VERSIONS.get(number) if isinstance(number, int) else None
    if found is None:
        raise UnsupportedFeatureError(
            f"Iceberg format version {number} is not offered", advice=f"write one of {', '.join(map(str, VERSIONS))}"
        )
    return found


def asked_version(text: object) -> FormatVersion:
    """The version that the value of `format-version` names. Raises InvalidArgumentError for one that is no number,
    UnsupportedFeatureError for one that is not offered."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidArgumentError(
            f"format-version is {text!r}, which is not a version of Iceberg's format",
            advice=f"write one of {', '.join(map(str, VERSIONS))}, as text",
        )
    return version_of_format(int(text))
