"""The threads of this package, which wait in a space while the program goes on.

They have to be threads of the system. Where gevent has replaced `threading`, a thread is a
greenlet: its first wait would stop all greenlets for ever, those of the program among them.
"""

from __future__ import annotations

import sys
import threading

from tupelo.errors import Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["system_thread"]

GEVENT_HINT = (
    "leave threads as they are: monkey.patch_all(thread=False); or use blocking verbs, in threads "
    'of gevent\'s pool: gevent.get_hub().threadpool.apply(space.take, ("job", int))'
)


def system_thread(
    run: Callable[..., object], name: str, arguments: Iterable[Any] = ()
) -> threading.Thread:
    """Return a daemon thread of the system, not yet started.

    Raises:
        Unsupported: gevent has replaced the threads of the system by greenlets.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        message = f'gevent has replaced threading: no thread can be had for "{name}"'
        refusal = Unsupported(message)
        refusal.hint = GEVENT_HINT
        raise refusal
    return threading.Thread(target=run, args=tuple(arguments), name=name, daemon=True)
