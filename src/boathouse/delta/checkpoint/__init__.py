"""Checkpoints: read by columns, checked, written as a stream (PROTOCOL.md, "Checkpoints")."""
