"""Pages of the documentation that are made from other files: MkDocs calls these functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files beside `docs` that become pages."""
SUPPORT = "[The table](../../README.md#what-each-format-can-do-today)"
"""The line of docs/reference/support.md in place of which the table stands."""


def on_files(files: Any, config: Any) -> Any:
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text("utf-8").replace("](docs/", "](").replace("](.ci/run)", "](contributing.md)")
        files.append(File.generated(config, page, content=_without_links(text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files beside `docs` lead to their pages."""
    for source, target in OUTSIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}(#[^)]*)?\)", rf"](/{target}\1)", markdown)
    readme = (ROOT / "README.md").read_text("utf-8")
    state = readme.partition("<!-- state: begin -->\n")[2].partition("<!-- state: end -->")[0]
    markdown = markdown.replace(SUPPORT, state)
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\]\(/(contributing|changelog)\.md", rf"]({up}\1.md", markdown)


def _without_links(text: str) -> str:
    """Links to files that are no pages become their text."""
    return re.sub(r"\[([^\]]+)\]\((?:benchmarks|src|tests|demo|makers|tools)/[^)]*\)", r"\1", text)
