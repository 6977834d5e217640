"""The waist: the interface between formats, operations and engines (docs/design/001-waist.md)."""
