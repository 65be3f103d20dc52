"""The page on adding a backend does what it says."""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tupelo_bench.backends import base
from tupelo_bench.backends.redis.space import RedisSpace

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-backend.md"


def test_the_lines_of_the_page_on_backends_do_what_it_says():
    programs = [block.split("```")[0] for block in PAGE.read_text("utf-8").split("```python\n")[1:]]
    declaration, definition = programs
    schema = eval(declaration, vars(base))  # noqa: S307 - our own page
    assert [shape.tag for shape in schema.shapes if not shape.awaited] == ["hash_set"]
    names: dict[str, Any] = {"pickle": pickle}
    exec(definition, names)  # noqa: S102 - the same
    sent: list[tuple[str, Any]] = []
    client = SimpleNamespace(
        register_script=lambda script: script,
        rpush=lambda key, data: sent.append((key, pickle.loads(data))),
    )
    space = RedisSpace(client, schema, "one")
    for fields in [("search_task", "0f", "not_processed"), ("hash_set", "0f", "secret")]:
        names["put"](space, *fields)
        space.put(*fields)
        of_the_page, of_the_adapter = sent[-2:]
        assert of_the_page == of_the_adapter
    assert dict(sent) == {
        "one:search_task:": ("search_task", "0f", "not_processed"),
        "one:hash_set:0f": ("hash_set", "0f", "secret"),
    }
    assert schema.route(("hash_set", str, str)) == (schema.by_tag["hash_set"], None)
