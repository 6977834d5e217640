"""`VariantBuilder`: variants built value by value."""

from __future__ import annotations

from boathouse.variant.value import Variant
from boathouse.variant.value_builder import ValueBuilder


class VariantBuilder(ValueBuilder):
    """Builds one variant: scalars of an exact type or `append(value)`, containers with begin and end.

    In an object each value is preceded by `key(name)`. With `metadata`, its ids are used and it must contain every
    name; otherwise `finish` creates the smallest dictionary. Every method returns the builder.

    Raises InvalidArgumentError for values that the type cannot hold, a name used twice in an object, more than 1,000
    nested containers, and calls out of order.

    >>> builder = bh.variant.VariantBuilder().begin_object()
    >>> built = builder.key("at").append_timestamp(0).key("n").append_int16(5).end().finish()
    >>> built.to_json()
    '{"at":"1970-01-01T00:00:00.000000Z","n":5}'
    """

    def finish(self) -> Variant:
        """The variant. The builder is then empty again. Raises InvalidArgumentError if a container is open, or nothing
        was appended."""
        return Variant(*self.encoded())
