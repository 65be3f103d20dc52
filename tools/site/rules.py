"""A hook of MkDocs: where a page or the help of a verb cites a rule, a click leads to the rule.

The rules are the items of docs/semantics.md that begin with a letter and a number, such as T5.
"""

import posixpath
import re
from itertools import zip_longest
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

CONTRACT = "semantics.md"
RULES = set(
    re.findall(
        r"^- ([A-Z]\d+) ",
        (Path(__file__).parents[2] / "docs" / CONTRACT).read_text("utf-8"),
        re.MULTILINE,
    )
)
ITEM = re.compile(r"<li>(\s*(?:<p>)?)([A-Z]\d+) ")
CITED = re.compile(r"(?<=[ (\n])([A-Z]\d+)(?=[),.:; \n])")
# Programs, links, headings, and whatever is no text.
OTHER = re.compile(r"(<(pre|code|a|h\d)\b.*?</\2>|<[^>]+>)", re.DOTALL)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give each rule of the contract an anchor, and link the rules that other pages cite."""
    del config
    if page.file.src_uri == CONTRACT:
        html = ITEM.sub(r'<li id="\2">\1\2 ', html)
        missing = [rule for rule in RULES if f'<li id="{rule}">' not in html]
        if missing:
            message = f"the page of the contract has no item for the rules {sorted(missing)}"
            raise PluginError(message)
        return html
    contract = files.get_file_from_path(CONTRACT)
    there = posixpath.relpath(contract.url, posixpath.dirname(page.url) or ".")

    def linked(cited: re.Match[str]) -> str:
        rule = cited[1]
        return f'<a href="{there}#{rule}">{rule}</a>' if rule in RULES else rule

    # Of each three pieces the first is text; the third is the name of the second's tag.
    pieces = OTHER.split(html)
    around = zip_longest(pieces[::3], pieces[1::3], fillvalue="")
    return "".join(CITED.sub(linked, text) + other for text, other in around)
