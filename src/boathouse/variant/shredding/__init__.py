"""Shredding of variant columns: `schema`, `choose`, `shred`, `unshred` and `get` (VariantShredding.md)."""
