"""The command line, `boathouse`. docs/cli.md lists its commands and exit codes."""

from __future__ import annotations

from boathouse.cli.app import main

__all__ = ["main"]
