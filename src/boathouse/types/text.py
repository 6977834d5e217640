"""Parses types in Spark's SQL syntax: `bigint`, `decimal(10,2)`, `array<struct<a:int,b:string>>`, `map<string,int>`."""

from __future__ import annotations

import re
from functools import lru_cache

from boathouse.errors import SchemaError
from boathouse.types.data_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HALF_FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DataType,
    DecimalType,
    Field,
    FixedSizeListType,
    FixedType,
    IntegerType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimeType,
)

_NAMES: dict[str, DataType] = {
    "boolean": BOOLEAN, "bool": BOOLEAN, "tinyint": INT8, "byte": INT8, "smallint": INT16, "short": INT16,
    "int": INT32, "integer": INT32, "bigint": INT64, "long": INT64, "float": FLOAT, "real": FLOAT,
    "double": DOUBLE, "halffloat": HALF_FLOAT, "string": STRING, "binary": BINARY, "date": DATE,
    "timestamp": TIMESTAMP, "timestamptz": TIMESTAMP, "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ, "void": NULL, "uuid": UUID, "variant": VARIANT, "time": TimeType("us"),
    "uint8": IntegerType(8, False), "uint16": IntegerType(16, False), "uint32": IntegerType(32, False),
    "uint64": IntegerType(64, False), "decimal": DecimalType(10, 0),
}  # fmt: skip
_LITERAL = r"'(?:[^'\\]|\\.|'')*'" + r'|"(?:[^"\\]|\\.|"")*"'
_TOKEN = re.compile(rf"\s*(`(?:[^`]|``)+`|{_LITERAL}|[A-Za-z_0-9]+|[<>(),:]|\S)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)|''|" + '""', re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
_MAX_DEPTH = 200  # of nested types: the parser recurses


@lru_cache(maxsize=1024)
def parse_type(text: str) -> DataType:
    """The type that the SQL text names. Raises SchemaError."""
    parser = _Parser(text)
    found = parser.type()
    parser.end()
    return found


def parse_schema(text: str) -> Schema:
    """Columns in Spark's DDL syntax: `id bigint not null comment 'key', tags array<string>`. Raises SchemaError."""
    parser = _Parser(text)
    fields = parser.fields("")
    parser.end()
    return Schema(fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self, expected: str | None = None) -> str:
        token = self._peek()
        if not token or (expected is not None and token != expected):
            found = repr(token) if token else "the end"
            raise SchemaError(
                f"cannot read the type {self._text!r}: found {found}"
                + (f" where {expected!r} is expected" if expected else ""),
                advice="write it as Spark does, for example array<struct<a:int,b:string>>",
            )
        self._at += 1
        return token

    def end(self) -> None:
        if self._peek():
            raise SchemaError(f"cannot read the type {self._text!r}: {self._peek()!r} follows it")

    def type(self) -> DataType:
        if self._depth == _MAX_DEPTH:
            raise SchemaError(f"a type of more than {_MAX_DEPTH} levels", advice="cast the deeper levels to variant")
        self._depth += 1
        found = self._type()
        self._depth -= 1
        return found

    def _type(self) -> DataType:
        name = self._next().lower()
        if name in ("array", "list"):
            return ListType(Field("element", self._angle()))
        if name == "map":
            self._next("<")
            key = self.type()
            self._next(",")
            value = self.type()
            self._next(">")
            return MapType(Field("key", key, False), Field("value", value))
        if name == "struct":
            self._next("<")
            fields = self.fields(">")
            self._next(">")
            return StructType(fields)
        if name == "vector":
            self._next("<")
            element = self.type()
            self._next(",")
            size = int(self._next())
            self._next(">")
            return FixedSizeListType(Field("item", element), size)
        return self._scalar(name)

    def _angle(self) -> DataType:
        self._next("<")
        inner = self.type()
        self._next(">")
        return inner

    def _scalar(self, name: str) -> DataType:
        arguments: list[int] = []
        if self._peek() == "(":
            self._next()
            while self._peek() != ")":
                token = self._next()
                if token != ",":
                    arguments.append(int(token) if token.isdigit() else -1)
            self._next(")")
        if name in ("decimal", "dec", "numeric") and arguments:
            return DecimalType(arguments[0], arguments[1] if len(arguments) > 1 else 0)
        if name == "fixed" and len(arguments) == 1:
            return FixedType(arguments[0])
        if name in ("varchar", "char"):
            return STRING
        if name == "time" and arguments:
            return TimeType("ns" if arguments[0] > 6 else "us")
        if name not in _NAMES:
            raise SchemaError(f"there is no type {name!r} in {self._text!r}", advice=f"known: {', '.join(_NAMES)}")
        return _NAMES[name]

    def fields(self, stop: str) -> tuple[Field, ...]:
        fields: list[Field] = []
        while self._peek() != stop:
            if fields:
                self._next(",")
            name = self._next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            if self._peek() == ":":
                self._next()
            type = self.type()
            nullable = True
            if self._peek().lower() == "not":
                self._next()
                self._next()
                nullable = False
            comment = None
            if self._peek().lower() == "comment":
                self._next()
                comment = self._literal()
            fields.append(Field(name, type, nullable, doc=comment))
        return tuple(fields)

    def _literal(self) -> str:
        if self._peek()[:1] not in ("'", '"'):
            self._next("'")
        text = self._next()[1:-1]
        return _ESCAPE.sub(lambda m: m[0][0] if m[1] is None else _CONTROLS.get(m[1], m[1]), text)
