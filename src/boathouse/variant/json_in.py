"""JSON text as a variant.

Integers as narrow as they fit, decimal16 beyond 64 bits; numbers with a point and without an exponent the narrowest
decimal that covers digits and scale (`1.10` is decimal4 110 of scale 2; `-0.0` is 0 of scale 1); with an exponent, or
beyond 38 digits or scale 38, double. Strings with escapes; an escaped pair of surrogates is one character.

Refused with InvalidJsonError and the byte of the text: what RFC 8259 does not allow (text after the value, NaN,
leading zeros, control characters in strings), a byte order mark, a name twice in an object, unpaired surrogates,
numbers beyond the range of double, more than 1,000 nested containers.
"""

from __future__ import annotations

import math
import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from boathouse.errors import InvalidArgumentError, InvalidJsonError
from boathouse.variant.builder import VariantBuilder
from boathouse.variant.encode import (
    DOUBLE_BYTES,
    decimal_id,
    encode_decimal,
    encode_int,
    encode_string,
)
from boathouse.variant.metadata import utf8
from boathouse.variant.primitives import DOUBLE, MAX_SCALE, NULL_VALUE
from boathouse.variant.value import Variant

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 38
_WORDS = (("null", NULL_VALUE), ("true", b"\x04"), ("false", b"\x08"))


def from_json(text: str | bytes) -> Variant:
    """The variant of one JSON text (bytes are UTF-8). Raises InvalidJsonError, as the module says."""
    builder = VariantBuilder()
    append_json(builder, text)
    return builder.finish()


def append_json(builder: VariantBuilder, text: str | bytes) -> None:
    """Appends the value of one JSON text to a builder. Raises InvalidJsonError."""
    if not isinstance(text, str):
        try:
            text = bytes(text).decode()
        except UnicodeDecodeError as problem:
            raise InvalidJsonError("the text is not UTF-8", offset=problem.start) from None
    _Parser(builder, text).parse()


class _Parser:
    """One pass over the text; what is open is a stack of the characters that close it."""

    def __init__(self, builder: VariantBuilder, text: str) -> None:
        self.builder = builder
        self.text = text
        self.at = 0

    def parse(self) -> None:
        """Appends the one value of the text."""
        closers: list[str] = []
        self.space()
        while True:
            opened = self.value()
            if opened:
                closers.append(opened)
                if self.peek() != opened:
                    self.key(opened)
                    continue
                self.close(closers)
            while closers and self.peek() != ",":
                if self.peek() != closers[-1]:
                    self.fail(f"a comma or {closers[-1]!r} is expected")
                self.close(closers)
            if not closers:
                break
            self.at += 1
            self.space()
            self.key(closers[-1])
        if self.at < len(self.text):
            self.fail("text follows the value")

    def space(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        self.space()
        return self.text[self.at : self.at + 1]

    def close(self, closers: list[str]) -> None:
        """Ends the innermost container at its closing character."""
        try:
            self.builder.end()
        except InvalidArgumentError as problem:
            self.fail(problem.message)
        closers.pop()
        self.at += 1
        self.space()

    def key(self, closer: str) -> None:
        """The name before a value, if the container is an object."""
        if closer != "}":
            return
        if self.peek() != '"':
            self.fail("a name in double quotes is expected")
        start = self.at
        name = self.string()
        try:
            utf8(name)
        except InvalidArgumentError as problem:
            self.fail(problem.message, start)
        self.builder.key(name)
        if self.peek() != ":":
            self.fail("a colon is expected")
        self.at += 1
        self.space()

    def value(self) -> str:
        """Appends a scalar, or begins a container: then the character that closes it."""
        first, start = self.text[self.at : self.at + 1], self.at
        try:
            if first == '"':
                self.builder.append_encoded(encode_string(self.string()))
            elif first in ("{", "["):
                self.builder.begin_object() if first == "{" else self.builder.begin_array()
                self.at += 1
                return "}" if first == "{" else "]"
            else:
                self.builder.append_encoded(self.word())
        except InvalidArgumentError as problem:
            self.fail(problem.message, start)
        return ""

    def string(self) -> str:
        try:
            text, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as problem:
            self.fail(problem.msg[0].lower() + problem.msg[1:], problem.pos)
        return text

    def word(self) -> bytes:
        """A number, null, true or false."""
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            for word, encoded in _WORDS:
                if self.text.startswith(word, self.at):
                    self.at += len(word)
                    return encoded
            self.fail("a value is expected")
        sign, whole, fraction, exponent = number.groups()
        start, self.at = self.at, number.end()
        digits = (whole + fraction if fraction else whole).lstrip("0")
        scale = len(fraction or "")
        if exponent is None and len(digits) <= _MAX_DIGITS and scale <= MAX_SCALE:
            unscaled = int(sign + (digits or "0"))
            return encode_decimal(decimal_id(unscaled, scale), unscaled, scale) if scale else encode_int(unscaled)
        value = float(number.group())
        if math.isinf(value):
            self.fail("the number is beyond the range of double", start)
        return DOUBLE_BYTES.pack(DOUBLE << 2, value)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        if at >= len(self.text):
            message += ", not the end of the text"
        raise InvalidJsonError(message, offset=len(self.text[:at].encode(errors="surrogatepass"))) from None
