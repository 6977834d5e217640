"""File statistics in their two forms, and what they prove of a file's rows (PROTOCOL.md, "Per-file Statistics")."""
