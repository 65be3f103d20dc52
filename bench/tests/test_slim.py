"""Figures are slimmed, and show the same."""

import re
from xml.etree import ElementTree as ET

from tupelo_bench.report.slim import slim

WHOLE = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
 <metadata>who made it</metadata>
 <defs><style type="text/css">*{stroke-linecap: butt}</style></defs>
 <g id="figure_1">
  <g>
   <defs><path id="m1a2b3c" d="M 0 0 L 1.23456 2.5"/></defs>
   <g clip-path="url(#p99)">
    <use xlink:href="#m1a2b3c" x="1.98765" y="2" style="fill: #ff0000; stroke-width: 0.75"/>
    <use xlink:href="#m1a2b3c" x="3.45678" y="2" style="fill: #ff0000; stroke-width: 0.75"/>
   </g>
   <text style="font-size: 9px" x="1.55555" y="1">ratio 1.98765</text>
  </g>
 </g>
 <defs><clipPath id="p99"><rect x="0" y="0"/></clipPath></defs>
</svg>
"""


def test_what_is_slim_says_the_same_in_fewer_words():
    text = slim(WHOLE, "one figure")
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert "metadata" not in text
    assert "1.98765" in text, "text is for people"
    uses = list(root.iter("{http://www.w3.org/2000/svg}use"))
    assert [use.get("x") for use in uses] == ["1.9", "3.4"]
    (group,) = root.iter("{http://www.w3.org/2000/svg}g")
    name = group.get("class")
    assert {use.get("class") for use in uses} == {None}, "it is said once"
    assert f".{name}{{fill: #ff0000; stroke-width: 0.75}}" in text
    assert 'style="font-size: 9px"' in text, "it comes once"
    named = set(re.findall(r' id="([^"]+)"', text))
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert named == asked
    assert group.get("clip-path") in {f"url(#{each})" for each in named}


def test_marks_of_several_colours_keep_their_own():
    other = WHOLE.replace("fill: #ff0000; stroke-width: 0.75", "fill: #00ff00", 1)
    twice = other.replace(
        "</g>\n   <text", other.split('p99)">')[1].split("</g>")[0] + "</g>\n   <text"
    )
    uses = ET.fromstring(slim(twice, "a")).iter("{http://www.w3.org/2000/svg}use")  # noqa: S314
    names = [use.get("class") for use in uses]
    assert names[0] != names[1]
    assert names[:2] == names[2:]


def test_the_names_of_two_figures_on_one_page_are_not_the_same():
    names = [set(re.findall(r'(?: id|class)="([^"]+)"', slim(WHOLE, each))) for each in "ab"]
    assert all(names)
    assert names[0].isdisjoint(names[1])
