"""The command line, `boathouse`.

Exit codes: 0 done; 1 the table or the data is at fault; 2 the command was typed wrongly; 3 nothing there, or no
such version; 4 legal, but not offered by boathouse; 5 corrupt; 6 the store failed; 130 interrupted.
"""

from __future__ import annotations

from boathouse.cli.app import main

__all__ = ["main"]
