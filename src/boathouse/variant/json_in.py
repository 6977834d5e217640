"""JSON text as a variant.

Integers take the narrowest type, decimal16 beyond 64 bits; numbers with a point and without an exponent the narrowest
decimal that covers digits and scale (`1.10` is decimal4 110 of scale 2; `-0.0` is 0 of scale 1); numbers with an
exponent, or beyond 38 digits or scale 38, are doubles. Strings with escapes; an escaped pair of surrogates is one
character.

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
from boathouse.variant.encode import DOUBLE_BYTES, decimal_id, encode_decimal, encode_int, encode_string
from boathouse.variant.metadata import utf8
from boathouse.variant.primitives import DOUBLE, MAX_DEPTH, MAX_SCALE, NULL_VALUE
from boathouse.variant.tree import Encoded, Node, assemble, check_names

_SPACE = r"[ \t\n\r]*"
_PLAIN = r'"([^"\\\x00-\x1f]*)"'
_KEY = re.compile(f"{_SPACE}{_PLAIN}{_SPACE}:")
_VALUE = re.compile(
    rf"{_SPACE}(?:{_PLAIN}|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(null|true|false)|([{{\[])){_SPACE}"
)
_BLANK = re.compile(_SPACE)
_MAX_DIGITS = 38
_WORDS = {"null": NULL_VALUE, "true": b"\x04", "false": b"\x08"}


def encode_json(text: str | bytes) -> Encoded:
    """Metadata and value of one JSON text (bytes are UTF-8).

    Raises InvalidJsonError as described in the module, InvalidArgumentError if it is not a string or bytes.
    """
    root, nodes = _Parser(text).parse()
    return assemble(root, nodes)


class _Parser:
    """One pass over the text, from value to value; the open containers are a stack."""

    def __init__(self, text: str | bytes) -> None:
        if not isinstance(text, str):
            if not isinstance(text, (bytes, bytearray, memoryview)):
                raise InvalidArgumentError(
                    f"JSON text is str or bytes, not {type(text).__name__}", advice="use from_python for Python values"
                )
            try:
                text = bytes(text).decode()
            except UnicodeDecodeError as problem:
                raise InvalidJsonError("the text is not UTF-8", offset=problem.start) from None
        self.text = text
        self.at = 0

    def parse(self) -> tuple[bytes | Node, list[Node]]:
        """The one value of the text, and its nodes with children before parents."""
        open_nodes: list[Node] = []
        closed: list[Node] = []
        while True:
            item = self.value()
            if isinstance(item, Node):
                if len(open_nodes) >= MAX_DEPTH:
                    opening = self.text.rindex("[" if item.names is None else "{", 0, self.at)
                    self.fail(f"more than {MAX_DEPTH:,} nested objects and arrays", opening)
                if open_nodes:
                    open_nodes[-1].children.append(item)
                open_nodes.append(item)
                if self.text[self.at : self.at + 1] not in ("}", "]"):
                    if item.names is not None:
                        item.names.append(self.key())
                    continue
            elif open_nodes:
                open_nodes[-1].children.append(item)
            while open_nodes and not self.comma(open_nodes[-1]):
                item = open_nodes.pop()
                closed.append(item)
            if not open_nodes:
                break
            names = open_nodes[-1].names
            if names is not None:
                names.append(self.key())
        if self.at < len(self.text):
            self.fail("text follows the value")
        return item, closed

    def comma(self, node: Node) -> bool:
        """Skips what follows a value: a comma (true), or the end of the container, which is checked."""
        found = self.text[self.at : self.at + 1]
        if found == ",":
            self.at += 1
            return True
        closer = "]" if node.names is None else "}"
        if found != closer:
            self.fail(f"a comma or {closer!r} is expected")
        if node.names is not None:
            try:
                check_names(node.names)
            except InvalidArgumentError as problem:
                self.fail(problem.message)
        self.at = _BLANK.match(self.text, self.at + 1).end()  # type: ignore[union-attr]
        return False

    def key(self) -> str:
        """The name before a value, and the colon."""
        found = _KEY.match(self.text, self.at)
        if found is not None:
            name, start = found[1], found.start(1) - 1
            self.at = found.end()
        else:
            self.blank()
            if self.text[self.at : self.at + 1] != '"':
                self.fail("a name in double quotes is expected")
            start, name = self.at, self.string()
            self.blank()
            if self.text[self.at : self.at + 1] != ":":
                self.fail("a colon is expected")
            self.at += 1
        if not name.isascii():
            try:
                utf8(name)
            except InvalidArgumentError as problem:
                self.fail(problem.message, start)
        return name

    def blank(self) -> None:
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]

    def value(self) -> bytes | Node:
        """A scalar encoded, or an empty node at its opening bracket; moves on to what follows."""
        found = _VALUE.match(self.text, self.at)
        if found is None:
            return self.escaped()
        kind, start = found.lastindex, self.at
        self.at = found.end()
        if kind == 1:
            try:
                return encode_string(found[1])
            except InvalidArgumentError as problem:
                self.fail(problem.message, start)
        if kind == 2:
            return self.number(found[2], start)
        return _WORDS[found[3]] if kind == 3 else Node([] if found[4] == "{" else None)

    def escaped(self) -> bytes:
        """A string that the pattern of plain strings does not match."""
        self.blank()
        start = self.at
        if self.text[start : start + 1] != '"':
            self.fail("a value is expected")
        text = self.string()
        self.blank()
        try:
            return encode_string(text)
        except InvalidArgumentError as problem:
            self.fail(problem.message, start)

    def string(self) -> str:
        try:
            text, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as problem:
            self.fail(
                problem.msg[0].lower() + problem.msg[1:].removesuffix(" at").removesuffix(" starting"), problem.pos
            )
        return str(text)

    def number(self, text: str, start: int) -> bytes:
        """A number, encoded by the rules of the module."""
        if len(text) <= _MAX_DIGITS and text.lstrip("-").isdigit():
            return encode_int(int(text))
        if "e" not in text and "E" not in text:
            whole, _, fraction = text.partition(".")
            scale = len(fraction)
            if scale <= MAX_SCALE and len((whole.lstrip("-") + fraction).lstrip("0")) <= _MAX_DIGITS:
                unscaled = int(whole + fraction)
                return encode_decimal(decimal_id(unscaled, scale), unscaled, scale) if scale else encode_int(unscaled)
        value = float(text)
        if math.isinf(value):
            self.fail("the number is beyond the range of double", start)
        return DOUBLE_BYTES.pack(DOUBLE << 2, value)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        if at >= len(self.text):
            message += ", but the text ends"
        raise InvalidJsonError(message, offset=len(self.text[:at].encode(errors="surrogatepass"))) from None
