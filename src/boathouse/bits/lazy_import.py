"""Lazy imports: opening a table must not wait for loading the code that writes one."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class Late:
    """A placeholder for a module, which is imported when an attribute is first accessed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)
