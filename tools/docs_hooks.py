"""Pages of the documentation that are made from other files: MkDocs calls these functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files beside `docs` that become pages."""
SUPPORT = "reference/support.md"
SUPPORT_HEAD = "# What each format can do\n\nFrom what tests prove: a word that no test proves is not in the table.\n\n"


def on_files(files: Any, config: Any) -> Any:
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text("utf-8").replace("](docs/", "](").replace("](.ci/run)", "](contributing.md)")
        files.append(File.generated(config, page, content=_without_links(text)))
    readme = (ROOT / "README.md").read_text("utf-8")
    state = readme.partition("<!-- state: begin -->\n")[2].partition("<!-- state: end -->")[0]
    files.append(File.generated(config, SUPPORT, content=SUPPORT_HEAD + state))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files beside `docs` lead to their pages."""
    for source, target in OUTSIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}(#[^)]*)?\)", rf"](/{target}\1)", markdown)
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\]\(/(contributing|changelog)\.md", rf"]({up}\1.md", markdown)


def _without_links(text: str) -> str:
    """Links to files that are no pages become their text."""
    return re.sub(r"\[([^\]]+)\]\((?:benchmarks|src|tests|demo|makers|tools)/[^)]*\)", r"\1", text)
