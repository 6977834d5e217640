"""The front door: Table, open, create, write; the only place that chooses an engine."""
