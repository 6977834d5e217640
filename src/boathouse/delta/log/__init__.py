"""The `_delta_log` folder: its entries, and what they add up to (PROTOCOL.md, "Delta Log Entries")."""
