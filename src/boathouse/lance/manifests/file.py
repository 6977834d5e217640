"""The manifest file: optional dictionaries, optional index section, optional transaction section, the Manifest, a
footer of 16 bytes.

Footer: i64 position of the manifest's u32 length, u16 major, u16 minor, "LANC". Each section is a u32 length and a
protobuf; its position is a field of the Manifest, and position 0 is a legal one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from boathouse.errors import CorruptTableError
from boathouse.lance.manifests import dictionaries
from boathouse.lance.manifests.dictionaries import Dictionaries
from boathouse.lance.manifests.messages import Manifest, ManifestHeader, Transaction

MAGIC = b"LANC"
_FOOTER = struct.Struct("<qHH4s")
_VERSION = (0, 2)


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest with what is beside it; `index` is kept as bytes. The places that the fields record for `values` are
    those of the file that was read."""

    manifest: Manifest
    index: bytes | None = None
    transaction: Transaction | None = None
    values: Dictionaries = field(default_factory=dict)


def parse(data: bytes, *, where: str) -> ManifestFile:
    """The manifest in `data`, the bytes of a whole file. Raises CorruptTableError naming `where`."""
    manifest = Manifest.decode(_manifest(data, where), where=where)
    index = None
    if manifest.index_section is not None:
        index = _section(data, manifest.index_section, "index section", where)
    at = manifest.transaction_section
    if at is None:
        at = manifest.transaction_section_21
    transaction = None
    if at is not None:
        transaction = Transaction.decode(_section(data, at, "transaction section", where), where=where)
    return ManifestFile(manifest, index, transaction, dictionaries.read(data, manifest.fields))


def parse_header(data: bytes, *, where: str) -> ManifestHeader:
    """What `parse` finds, without fragments and schema. Raises CorruptTableError."""
    return ManifestHeader.decode(_manifest(data, where), where=where)


def _manifest(data: bytes, where: str) -> bytes:
    if len(data) < _FOOTER.size:
        raise _corrupt(f"a manifest of {len(data)} bytes, shorter than its footer", where)
    position, _, _, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC:
        raise _corrupt(f"a manifest that ends with {magic!r} instead of {MAGIC!r}", where)
    return _section(data, position, "manifest", where)


def serialise(file: ManifestFile) -> bytes:
    """The bytes of a manifest file; positions of sections (transaction: field 23) and of the values of dictionaries
    are set here."""
    fields, values = dictionaries.placed(file.manifest.fields, file.values, 0)
    parts = [values]
    at = len(values)

    def section(body: bytes | None) -> int | None:
        nonlocal at
        if body is None:
            return None
        start = at
        parts.append(struct.pack("<I", len(body)) + body)
        at += 4 + len(body)
        return start

    index_at = section(file.index)
    transaction_at = section(None if file.transaction is None else file.transaction.encode())
    manifest = replace(
        file.manifest,
        fields=fields,
        index_section=index_at,
        transaction_section=transaction_at,
        transaction_section_21=None,
    )
    position = at
    section(manifest.encode())
    return b"".join((*parts, _FOOTER.pack(position, *_VERSION, MAGIC)))


def _section(data: bytes, position: int, name: str, where: str) -> bytes:
    end = len(data) - _FOOTER.size
    if not 0 <= position <= end - 4:
        raise _corrupt(f"the recorded start of the {name} is byte {position} of {len(data)}", where)
    (length,) = struct.unpack_from("<I", data, position)
    start = position + 4
    if start + length > end:
        raise _corrupt(f"the {name} at byte {position} should have {length} bytes, but has {end - start}", where)
    return data[start : start + length]


def _corrupt(found: str, where: str) -> CorruptTableError:
    return CorruptTableError(found, where=where, advice="restore the file, or open an older version by number")
