"""The Variant encoding: one value (`Variant`, `VariantBuilder`) and whole Arrow columns (`columns`, `shredding`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boathouse.variant.arrays import VariantArray, annotate
    from boathouse.variant.builder import VariantBuilder
    from boathouse.variant.columns.decode import to_pylist
    from boathouse.variant.columns.faults import Lenient
    from boathouse.variant.columns.from_arrow import from_arrow
    from boathouse.variant.columns.from_json import from_json
    from boathouse.variant.columns.schema_of import schema_of
    from boathouse.variant.columns.to_arrow import to_arrow
    from boathouse.variant.columns.to_json import to_json
    from boathouse.variant.columns.valid import is_valid
    from boathouse.variant.extraction import extract
    from boathouse.variant.metadata import Metadata, build_metadata, parse_metadata
    from boathouse.variant.path import format_path, parse_path
    from boathouse.variant.schemas import VariantSchema, merge
    from boathouse.variant.shredding.choose import choose
    from boathouse.variant.shredding.schema import ShreddingSchema, shredding_schema
    from boathouse.variant.shredding.shred import shred
    from boathouse.variant.shredding.unshred import unshred
    from boathouse.variant.spark import from_spark, to_spark
    from boathouse.variant.validate import Finding
    from boathouse.variant.value import Variant

_HOMES = {
    "Variant": "boathouse.variant.value",
    "VariantBuilder": "boathouse.variant.builder",
    "Metadata": "boathouse.variant.metadata",
    "build_metadata": "boathouse.variant.metadata",
    "parse_metadata": "boathouse.variant.metadata",
    "parse_path": "boathouse.variant.path",
    "format_path": "boathouse.variant.path",
    "Finding": "boathouse.variant.validate",
    "VariantSchema": "boathouse.variant.schemas",
    "merge": "boathouse.variant.schemas",
    "VariantArray": "boathouse.variant.arrays",
    "annotate": "boathouse.variant.arrays",
    "Lenient": "boathouse.variant.columns.faults",
    "extract": "boathouse.variant.extraction",
    "from_arrow": "boathouse.variant.columns.from_arrow",
    "from_json": "boathouse.variant.columns.from_json",
    "is_valid": "boathouse.variant.columns.valid",
    "schema_of": "boathouse.variant.columns.schema_of",
    "to_arrow": "boathouse.variant.columns.to_arrow",
    "to_json": "boathouse.variant.columns.to_json",
    "to_pylist": "boathouse.variant.columns.decode",
    "ShreddingSchema": "boathouse.variant.shredding.schema",
    "shredding_schema": "boathouse.variant.shredding.schema",
    "choose": "boathouse.variant.shredding.choose",
    "shred": "boathouse.variant.shredding.shred",
    "unshred": "boathouse.variant.shredding.unshred",
    "from_spark": "boathouse.variant.spark",
    "to_spark": "boathouse.variant.spark",
}

__all__ = [
    "Finding",
    "Lenient",
    "Metadata",
    "ShreddingSchema",
    "Variant",
    "VariantArray",
    "VariantBuilder",
    "VariantSchema",
    "annotate",
    "build_metadata",
    "choose",
    "extract",
    "format_path",
    "from_arrow",
    "from_json",
    "from_spark",
    "is_valid",
    "merge",
    "parse_metadata",
    "parse_path",
    "schema_of",
    "shred",
    "shredding_schema",
    "to_arrow",
    "to_json",
    "to_pylist",
    "to_spark",
    "unshred",
]


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
