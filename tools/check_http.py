"""Ask a server what its OpenAPI document allows and forbids, with schemathesis: `make test-http`.

Every check but one is on. A schema can not say which texts are a condition or a template, or which
claims there are. So a request that the schema allows may be refused, with 400 or 410. The answer of
`events` has no end, so it is left out.

schemathesis, which has an environment of its own, imports this file, too: as a hook by which
requests that would wait for a tuple wait for a moment only.
"""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LONGEST_WAIT_S = 3600


def shorten(_context: Any, case: Any, _options: Any) -> None:
    """Shorten a wait that the document allows."""
    body = case.body
    if isinstance(body, dict) and isinstance(wait := body.get("timeout_s"), (int, float)):
        body["timeout_s"] = min(wait, 0.01) if wait <= LONGEST_WAIT_S else wait


if importlib.util.find_spec("schemathesis"):
    importlib.import_module("schemathesis").hook("before_call")(shorten)

SCHEMATHESIS = Path(".venv/http/bin/schemathesis")
# Single requests, and then chains of them.
PHASES = ["examples,coverage,fuzzing", "stateful"]
EXAMPLES = 20


def main(program: str) -> int:
    """Serve with `program`, and ask; 1 if an answer is not as described."""
    serve = [program, "serve", "--listen", "http://127.0.0.1:0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        try:
            line = server.stdout.readline() if server.stdout else ""
            address = line.removeprefix("serving ").strip()
            document = address.removesuffix("/v1/spaces/NAME") + "/openapi.json"
            options = ["--checks=all", "--exclude-checks=positive_data_acceptance"]
            options += ["--exclude-operation-id=events", f"--max-examples={EXAMPLES}"]
            hooks = {**os.environ, "SCHEMATHESIS_HOOKS": "check_http", "PYTHONPATH": "tools"}
            asked = [
                subprocess.run(  # noqa: S603 - ours, too
                    [SCHEMATHESIS, "run", document, *options, f"--phases={phases}"],
                    env=hooks,
                    check=False,
                )
                for phases in PHASES
            ]
        finally:
            server.terminate()
    return max(one.returncode for one in asked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
