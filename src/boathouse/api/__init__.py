"""The public API: Table, open, create, write; the only place that chooses an engine."""
