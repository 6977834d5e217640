"""The README as the package's page shows it: a hook of the build. A link to a file leads to the project's home."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": linked(text, home)}


def linked(text: str, home: str) -> str:
    return re.sub(r"\]\((?!https?://|#)([^)]+)\)", rf"]({home}/blob/main/\1)", text)
