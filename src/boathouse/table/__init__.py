"""The waist: what flows between formats, operations and engines (docs/design/001-waist.md)."""
