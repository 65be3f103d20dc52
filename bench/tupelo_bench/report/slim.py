"""SVG without what nobody sees: matplotlib's files are three times as long as they need to be."""

from __future__ import annotations

import re
import zlib
from collections import Counter


def slim(text: str, name: str) -> str:
    """The SVG element of a file without what nobody sees: a third of its size.

    Many figures stand on one page, so the names inside get a prefix of their own.
    """
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns:xlink="[^"]*"', "", text).replace("xlink:href=", "href=")
    prefix = f"f{zlib.crc32(name.encode()):08x}"
    text = _without_bare_groups(_with_short_names(text, prefix))
    # A tenth of a point is not seen. What stands between the tags is text for people.
    places = r' (?:d|x|y|transform)="[^"]+"'
    text = re.sub(places, lambda place: re.sub(r"(\d\.\d)\d+", r"\1", place[0]), text)
    return _with_common_classes(_with_classes(re.sub(r"\s*\n\s*", "\n", text), prefix))


def _with_short_names(text: str, prefix: str) -> str:
    """The same with names for what is named anywhere, and for nothing else."""
    named = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    short = {old: f"{prefix}-{number}" for number, old in enumerate(named)}
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", text)
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + short[m[2]], text)


def _without_bare_groups(text: str) -> str:
    """The same without groups that say nothing of what is in them."""
    kept: list[bool] = []

    def tag(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return found[0] if kept.pop() else ""
        kept.append(found[0] != "<g>")
        return found[0] if kept[-1] else ""

    return re.sub(r"<g(?: [^>]*)?>|</g>", tag, text)


def _with_classes(text: str, prefix: str) -> str:
    """The same with each style that comes again said once."""
    styles = Counter(re.findall(r' style="([^"]+)"', text))
    names = {
        style: f"{prefix}s{number}"
        for number, (style, count) in enumerate(styles.items())
        if count > 1
    }
    rules = "".join(f"\n.{name}{{{style}}}" for style, name in names.items())

    def classed(found: re.Match[str]) -> str:
        return f' class="{names[found[1]]}"' if found[1] in names else found[0]

    text = re.sub(r' style="([^"]+)"', classed, text)
    return text.replace("</style>", f"{rules}\n</style>", 1)


def _with_common_classes(text: str) -> str:
    """The same with the class of the marks of a group said once, if all have the same."""

    def common(found: re.Match[str]) -> str:
        group, marks = found[1], found[2]
        classes = re.findall(r' class="[^"]+"', marks)
        if len(set(classes)) != 1 or len(classes) != marks.count("<use"):
            return found[0]
        return f"<g{group}{classes[0]}>\n{marks.replace(classes[0], '')}</g>"

    return re.sub(r"<g((?: (?!class)[^ >]*)*)>\n((?:<use [^>]*/>\n)+)</g>", common, text)
