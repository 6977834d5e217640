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
    """

    __slots__ = ()

    @classmethod
    def from_python(cls, obj: object) -> Self:
        """The variant of a Python value: see `boathouse.variant.python_values`. Raises InvalidArgumentError."""
        return cls(*encode_python(obj))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The variant of JSON text: see `boathouse.variant.json_in`. Raises InvalidJsonError."""
        return cls(*encode_json(text))

    @overload
    def get(self, path: Path) -> Self | None: ...

    @overload
    def get(self, path: Path, type: DataType | str, *, safe: bool = False) -> Any: ...

    def get(self, path: Path, type: DataType | str | None = None, *, safe: bool = False) -> Any:
        """The value at a path such as `$.a.b[0]` or ("a", "b", 0), as a variant or cast to a type; None if there is
        none.

        A path into a scalar, a missing key and an index beyond the end give None, not an error. Raises ExpressionError
        for an invalid path, and as `cast`.
        """
        found = super().get(path)
        return found if type is None or found is None else found.cast(type, safe=safe)

    def try_get(self, path: Path, type: DataType | str) -> Any:
        """As `get`, but None where the cast fails."""
        return self.get(path, type, safe=True)

    def cast(self, type: DataType | str, *, safe: bool = False) -> Any:
        """The value as an SQL type, as a Python object: see `boathouse.variant.cast`. None for a variant null.

        Raises EvaluationError where the cast fails, unless `safe`.
        """
        return cast_value(self, type, safe)

    def try_cast(self, type: DataType | str) -> Any:
        """As `cast`, but None where the cast fails."""
        return self.cast(type, safe=True)

    def to_python(self) -> Any:
        """The value as Python objects: see `boathouse.variant.to_python`."""
        return to_python(self)

    def to_json(self, *, special: Special = "refuse") -> str:
        """Canonical JSON text: see `boathouse.variant.json_out`."""
        return to_json(self, special=special)

    def validate(self) -> tuple[Finding, ...]:
        """Everything that is wrong or odd about the bytes: see `boathouse.variant.validate`."""
        return validate(self)

    def schema_of(self) -> VariantSchema:
        """Its schema, which prints as Spark's `schema_of_variant` does."""
        return schema_of(self)

    def explode(self, outer: bool = False) -> Iterator[tuple[int | None, str | None, Self | None]]:
        """(pos, key, value) of each field or element: see `boathouse.variant.explode`."""
        return explode(self, outer)

    def set(self, path: Path, value: object, *, create_if_missing: bool = True, safe: bool = False) -> Self | None:
        """A copy with another value at the path: see `boathouse.variant.edit`, also for the four that follow."""
        return edit.set(self, path, value, create_if_missing=create_if_missing, safe=safe)

    def insert(self, path: Path, value: object, *, safe: bool = False) -> Self | None:
        """A copy with a new field, or a new element before the one at the path."""
        return edit.insert(self, path, value, safe=safe)

    def delete(self, *paths: Path) -> Self:
        """A copy without the values at the paths."""
        return edit.delete(self, *paths)

    def array_append(self, path: Path, value: object, *, safe: bool = False) -> Self | None:
        """A copy with one more element in the array at the path."""
        return edit.array_append(self, path, value, safe=safe)

    def strip_nulls(self, *, include_arrays: bool = True) -> Self:
        """A copy without variant nulls in objects and, unless `include_arrays` is false, in arrays."""
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
