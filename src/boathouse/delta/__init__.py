"""Delta Lake tables (delta-io/delta, PROTOCOL.md)."""
