"""What people write by hand on top of a space, done once.

Each battery is a thin layer over the verbs of a space, works in every kind of space (but for what
needs other processes: `worker`, and the `timeout` of a task of a `Pool`), and documents its
tuples, so that a program in another language can take part: see docs/batteries.md.
`tupelo.aio.batteries` has the same for asyncio.

>>> from tupelo.batteries import Counter
>>> hits = Counter(space, "hits")
>>> hits += 1
>>> hits.value
1
"""

from tupelo.batteries.barrier import Barrier, BrokenBarrier, Latch
from tupelo.batteries.gathering import Rows, gather
from tupelo.batteries.locks import Lock, Permit, RWLock, Semaphore
from tupelo.batteries.pool import Failure, Pool
from tupelo.batteries.queue import DeadItem, DeadItems, Delivery, Queue
from tupelo.batteries.remote import RemoteFunction, worker
from tupelo.batteries.service import Service, call
from tupelo.batteries.values import Counter, Register

__all__ = [
    "Barrier",
    "BrokenBarrier",
    "Counter",
    "DeadItem",
    "DeadItems",
    "Delivery",
    "Failure",
    "Latch",
    "Lock",
    "Permit",
    "Pool",
    "Queue",
    "RWLock",
    "Register",
    "RemoteFunction",
    "Rows",
    "Semaphore",
    "Service",
    "call",
    "gather",
    "worker",
]
