"""`Variant`: one value, what is made of it and what it is made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, overload

from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.types import DataType
from boathouse.variant import edit, equality
from boathouse.variant.cast import cast_value
from boathouse.variant.explode import explode
from boathouse.variant.json_in import encode_json
from boathouse.variant.json_out import Special, to_json
from boathouse.variant.python_values import encode_python
from boathouse.variant.schemas import VariantSchema, schema_of
from boathouse.variant.to_python import to_python
from boathouse.variant.validate import Finding, validate
from boathouse.variant.view import Path, VariantView


class Variant(VariantView):
    """A Variant value: metadata and value bytes as VariantEncoding.md lays them out.

    Children share the buffers of their parent. The metadata is read at once, the value when it is accessed; malformed
    bytes raise MalformedVariant then, unknown primitive types UnsupportedFeatureError. Two variants are compared by
    equivalence class (int8 1 equals decimal 1.00; float 1.5 does not equal double 1.5). They are not ordered.

    >>> v = bh.variant.Variant.from_json('{"name": "Kiel", "at": [54.32, 10.14]}')
    >>> v["name"].to_python(), v.get("$.at[0]", "double"), v.type, len(v["at"])
    ('Kiel', 54.32, 'object', 2)
    """

    __slots__ = ()

    @classmethod
    def from_python(cls, obj: object) -> Self:
        """The variant of a Python value.

        None is null, bool boolean, int the narrowest of int8 to int64 and then decimal16, float double, Decimal the
        narrowest decimal, str string, bytes binary, date date, datetime timestamp (with a zone) or timestamp_ntz
        (without), time time, UUID uuid, list and tuple array, dict with string keys object, Variant a copy with its
        exact types. Scalars and arrays of numpy keep their width; nanoseconds of numpy and pandas stay.

        Raises InvalidArgumentError, with the path, for other types, keys that are not strings, integers and decimals
        beyond 38 digits, text with unpaired surrogates, times with a zone, more than 1,000 nested containers.

        >>> bh.variant.Variant.from_python({"id": 7, "tags": ["a", None]}).to_json()
        '{"id":7,"tags":["a",null]}'
        """
        return cls(*encode_python(obj))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The variant of JSON text (bytes are UTF-8).

        Integers take the narrowest type, decimal16 beyond 64 bits; numbers with a point and without an exponent the
        narrowest decimal that covers their digits; others are doubles.

        Raises InvalidJsonError, with the byte, for what RFC 8259 does not allow, a name twice in an object, unpaired
        surrogates, numbers beyond double, more than 1,000 nested containers; InvalidArgumentError for what is not text.

        >>> bh.variant.Variant.from_json("1.10").type
        'decimal4'
        """
        return cls(*encode_json(text))

    @overload
    def get(self, path: Path) -> Self | None: ...

    @overload
    def get(self, path: Path, type: DataType | str, *, safe: bool = False) -> Any: ...

    def get(self, path: Path, type: DataType | str | None = None, *, safe: bool = False) -> Any:
        """The value at a path such as `$.a.b[0]` or ("a", "b", 0), as a variant or cast to a type; None if there is
        none.

        A path into a scalar, a missing key and an index beyond the end give None, not an error.

        Raises ExpressionError for an invalid path, MalformedVariant, EvaluationError where the cast fails, unless
        `safe`, UnsupportedTypeError for a type that variants are not cast to.
        """
        found = super().get(path)
        return found if type is None or found is None else found.cast(type, safe=safe)

    def try_get(self, path: Path, type: DataType | str) -> Any:
        """The value at a path as a type; None if there is none, and where the cast fails.

        Raises ExpressionError for an invalid path, MalformedVariant, UnsupportedTypeError.
        """
        return self.get(path, type, safe=True)

    def cast(self, type: DataType | str, *, safe: bool = False) -> Any:
        """The value as an SQL type, as a Python object, by the rules of Spark's `variant_get`. None for a variant null.

        Scalars are cast as ANSI CAST does; strings of times are read in UTC; a whole number becomes a TIMESTAMP in
        seconds; an object or array becomes its JSON as STRING, and is cast field by field to structs and maps, element
        by element to arrays.

        Raises EvaluationError where the cast fails, unless `safe` (then None), UnsupportedTypeError for a type that
        variants are not cast to, MalformedVariant.

        >>> bh.variant.Variant.from_json('{"id": "7"}').cast("struct<id:int,x:int>")
        {'id': 7, 'x': None}
        """
        return cast_value(self, type, safe)

    def try_cast(self, type: DataType | str) -> Any:
        """The value as an SQL type, as a Python object, by the rules of Spark's `try_variant_get`: None where the cast
        fails.

        Raises UnsupportedTypeError for a type that variants are not cast to, MalformedVariant.
        """
        return self.cast(type, safe=True)

    def to_python(self) -> Any:
        """The value as Python objects.

        null None, boolean bool, int8 to int64 int, float and double float, decimals Decimal, date datetime.date,
        timestamp an aware datetime in UTC, timestamp_ntz a naive one, time datetime.time, both nanosecond timestamps
        numpy.datetime64[ns] (that of timestamp_nanos is UTC), binary bytes, string str, uuid uuid.UUID, object dict in
        stored order, array list.

        Raises EvaluationError for dates and timestamps that Python cannot hold, MalformedVariant,
        UnsupportedFeatureError for primitive types of later specifications.
        """
        return to_python(self)

    def to_json(self, *, special: Special = "refuse") -> str:
        """Canonical JSON text: no spaces, objects in the order of their names' UTF-8 bytes, decimals with all digits of
        their scale, times as ISO 8601, binary in base64.

        `special` says how NaN and infinities are written: "refuse" (EvaluationError), "string" or "null". Raises
        MalformedVariant, UnsupportedFeatureError for primitive types of later specifications.

        >>> bh.variant.Variant.from_python({"b": 1, "a": float("nan")}).to_json(special="string")
        '{"a":"NaN","b":1}'
        """
        return to_json(self, special=special)

    def validate(self) -> tuple[Finding, ...]:
        """Everything that is wrong or odd about the bytes, errors and oddities, those of the metadata first; at most
        1,000.

        Never raises because of a finding.

        >>> bh.variant.Variant(b"\\x01\\x00\\x00", b"\\x04").validate()
        ()
        """
        return validate(self)

    def schema_of(self) -> VariantSchema:
        """Its schema, which prints as Spark's `schema_of_variant` does. Raises MalformedVariant,
        UnsupportedFeatureError.

        >>> print(bh.variant.Variant.from_json('{"a": [1, 2]}').schema_of())
        OBJECT<a: ARRAY<BIGINT>>
        """
        return schema_of(self)

    def explode(self, outer: bool = False) -> Iterator[tuple[int | None, str | None, Self | None]]:
        """(pos, key, value) of each field in stored order, or of each element, whose key is None, as Spark's
        `variant_explode`.

        No rows for other values and for empty containers, or with `outer` one row of Nones. Raises MalformedVariant.
        """
        return explode(self, outer)

    def set(self, path: Path, value: object, *, create_if_missing: bool = True, safe: bool = False) -> Self | None:
        """A copy with another value at the path, as Spark's `variant_set`; missing parents are created, arrays padded
        with nulls.

        `value` is a Variant or anything that `from_python` takes; None is a variant null. Without `create_if_missing` a
        missing path changes nothing. Raises EvaluationError where the path meets a value of another kind, unless `safe`
        (then None), ExpressionError for an invalid path and for `$`, InvalidArgumentError for the value,
        MalformedVariant.

        >>> bh.variant.Variant.from_json('{"a": {"b": 1}}').set("$.a.c", [True]).to_json()
        '{"a":{"b":1,"c":[true]}}'
        """
        return edit.set(self, path, value, create_if_missing=create_if_missing, safe=safe)

    def insert(self, path: Path, value: object, *, safe: bool = False) -> Self | None:
        """A copy with a new field, or a new element before the one at the path, as Spark's `variant_insert`.

        Missing parents are created. Raises EvaluationError if the field exists or the path meets a value of another
        kind, unless `safe` (then None), ExpressionError for an invalid path and for `$`, InvalidArgumentError,
        MalformedVariant.
        """
        return edit.insert(self, path, value, safe=safe)

    def delete(self, *paths: Path) -> Self:
        """A copy without the values at the paths, taken one after the other; a path without a value changes nothing.

        Raises ExpressionError for an invalid path and for `$`, MalformedVariant.
        """
        return edit.delete(self, *paths)

    def array_append(self, path: Path, value: object, *, safe: bool = False) -> Self | None:
        """A copy with one more element in the array at the path; a missing path changes nothing.

        Raises EvaluationError if the value there is not an array, unless `safe` (then None), ExpressionError for an
        invalid path, InvalidArgumentError, MalformedVariant.
        """
        return edit.array_append(self, path, value, safe=safe)

    def strip_nulls(self, *, include_arrays: bool = True) -> Self:
        """A copy without variant nulls in objects and, unless `include_arrays` is false, in arrays; a null at the top
        stays.

        Raises MalformedVariant.
        """
        return edit.strip_nulls(self, include_arrays=include_arrays)

    def __eq__(self, other: object) -> bool:
        return bool(equality.equal(self, other)) if isinstance(other, Variant) else NotImplemented

    def __hash__(self) -> int:
        return int(equality.hash_of(self))

    def __lt__(self, other: object) -> bool:
        raise UnsupportedFeatureError(
            "ordering of variants", advice="extract a typed value by a path and order by that"
        )

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self) -> str:
        try:
            text = self.to_json(special="string")
        except BoathouseError as problem:
            return f"<Variant: {problem}>"
        return f"<Variant {self.type} {text if len(text) <= 100 else text[:97] + '...'}>"
