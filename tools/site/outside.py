"""A hook of MkDocs: what the pages link to outside of docs/ is in the site, or has its path there.

* The pages at the root of the tree that readers look for are pages of the site.
* The pages of errors, which `tupelo explain` prints, are one page of the site.
* A link to another file leads to the repository, if `repo_url` is set. Otherwise its text and its
  path stand there.

On a code host the links work as they are written.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Of a page at the root, where it is in the site."""
IN_SITE = ROOT_PAGES | {"README.md": "index.md"}
"""The same, and the first page of the site, which stands for the README."""

PROGRAM = re.compile(r"^(```[^\n]*\n.*?^```|(?: {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are outside of docs/."""
    for name, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "reference/errors.md", content=errors()))
    return files


def errors() -> str:
    """The pages of all errors as one, each with its code as its anchor."""
    pages = [path.read_text("utf-8") for path in sorted(ROOT.glob("crates/cli/errors/*.md"))]
    sections = [re.sub(r"\A# (TUP-\d+)([^\n]*)", r"## \1\2 { #\1 }", page) for page in pages]
    head = (
        "# Errors\n\nEach error has a code. `tupelo explain TUP-003` prints its page in a terminal."
    )
    return "\n".join([head, "", *sections])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn each link that leaves docs/, but not what looks like one in a program."""
    place = page.file.src_uri
    source = {inside: name for name, inside in ROOT_PAGES.items()}.get(place, f"docs/{place}")

    def turned(link: re.Match[str]) -> str:
        text, written, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), written))
        inside = in_site(target, files)
        if inside is not None:
            there = posixpath.relpath(inside, posixpath.dirname(place) or ".")
            return f"[{text}]({there}{anchor})"
        if target.startswith("docs/") or not (ROOT / target).exists():
            return link[0]  # leads nowhere: MkDocs says so
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{target}{anchor})"
        return text if target in text else f"{text} (`{target}`)"

    pieces = PROGRAM.split(markdown)
    return "".join(piece if n % 2 else LINK.sub(turned, piece) for n, piece in enumerate(pieces))


def in_site(target: str, files: Files) -> str | None:
    """The page of the site for a file or folder of the tree, if it has one."""
    if target in IN_SITE:
        return IN_SITE[target]
    if not target.startswith("docs/"):
        return None
    inside = target.removeprefix("docs/")
    found = [name for name in (inside, f"{inside}/README.md") if files.get_file_from_path(name)]
    return found[0] if found else None
