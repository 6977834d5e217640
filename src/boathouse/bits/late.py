"""Modules that are loaded when they are first used: opening a table must not wait for the code that writes one."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Late:
    """Stands for a module until an attribute of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
