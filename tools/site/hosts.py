"""A hook of MkDocs: no page loads anything from another host, so the site needs no network."""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

LOADS = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?((?:https?:)?//[^\"\s>]+)")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads from elsewhere. A link that the reader may follow is none of it."""
    del config
    found = LOADS.search(output)
    if found:
        message = f"{page.file.src_uri} loads {found[1]}: put the file into docs/, or leave it out"
        raise PluginError(message)
    return output
