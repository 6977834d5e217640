"""Z85 (ZeroMQ RFC 32): 4 bytes as 5 printable characters; Delta encodes the uuids of deletion vectors and inline
vectors so."""

from __future__ import annotations

from boathouse.errors import CorruptTableError, InvalidArgumentError

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUE = {char: value for value, char in enumerate(ALPHABET)}


def encode(data: bytes) -> str:
    """`data` in Z85; its length must be a multiple of 4 (InvalidArgumentError)."""
    if len(data) % 4:
        raise InvalidArgumentError(f"Z85 encodes multiples of 4 bytes, not {len(data)}", advice="pad the data")
    out: list[str] = []
    for i in range(0, len(data), 4):
        word = int.from_bytes(data[i : i + 4], "big")
        chars = []
        for _ in range(5):
            word, digit = divmod(word, 85)
            chars.append(ALPHABET[digit])
        out.extend(reversed(chars))
    return "".join(out)


def decode(text: str, *, where: str | None = None) -> bytes:
    """The bytes that `text` encodes.

    Raises CorruptTableError for a foreign character, a length that is not a multiple of 5, or a group above 2**32 - 1.
    """
    if len(text) % 5:
        raise CorruptTableError(f"Z85 text of {len(text)} characters: not a multiple of 5", where=where)
    out = bytearray()
    for i in range(0, len(text), 5):
        word = 0
        for char in text[i : i + 5]:
            digit = _VALUE.get(char)
            if digit is None:
                raise CorruptTableError(f"{char!r} is not a Z85 character", where=where)
            word = word * 85 + digit
        if word > 0xFFFFFFFF:
            raise CorruptTableError(f"Z85 group {text[i : i + 5]!r} is above 2**32 - 1", where=where)
        out += word.to_bytes(4, "big")
    return bytes(out)
