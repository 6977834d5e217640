"""`VariantBuilder`: variants built value by value."""

from __future__ import annotations

from boathouse.variant.value import Variant
from boathouse.variant.value_builder import ValueBuilder


class VariantBuilder(ValueBuilder):
    """Builds one variant: scalars of an exact type or `append(value)`, containers with begin and end.

    In an object each value is preceded by `key(name)`. With `metadata`, its ids are used and it must contain every
    name; otherwise `finish` creates the smallest dictionary. Raises InvalidArgumentError for values that no variant can
    hold, a name used twice in an object, more than 1,000 nested containers, and calls out of order.
    """

    def finish(self) -> Variant:
        """The variant. The builder is then empty again."""
        return Variant(*self.encoded())
