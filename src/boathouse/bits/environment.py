"""Settings in the environment of the process."""

from __future__ import annotations

import os


def switched_on(name: str) -> bool:
    """Whether a variable is set to anything but 0, false, no or nothing."""
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false", "no")


def switched_off(name: str) -> bool:
    """Whether a variable is set to 0, false or no."""
    return os.environ.get(name, "").strip().lower() in ("0", "false", "no")
