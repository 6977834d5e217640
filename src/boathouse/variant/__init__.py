"""The Variant encoding: one value (`Variant`, `VariantBuilder`) and whole Arrow columns (`columns`, `shredding`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boathouse.variant.builder import VariantBuilder
    from boathouse.variant.metadata import Metadata, build_metadata, parse_metadata
    from boathouse.variant.validate import Finding
    from boathouse.variant.value import Variant

_HOMES = {
    "Variant": "boathouse.variant.value",
    "VariantBuilder": "boathouse.variant.builder",
    "Metadata": "boathouse.variant.metadata",
    "build_metadata": "boathouse.variant.metadata",
    "parse_metadata": "boathouse.variant.metadata",
    "Finding": "boathouse.variant.validate",
}

__all__ = ["Finding", "Metadata", "Variant", "VariantBuilder", "build_metadata", "parse_metadata"]


def __getattr__(name: str) -> Any:
    """Loads public names when first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'boathouse.variant' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
