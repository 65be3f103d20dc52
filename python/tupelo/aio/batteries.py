"""The batteries for asyncio: `tupelo.batteries`, over a space of `tupelo.aio`.

The same names, arguments, tuples and guarantees; what blocks there is awaited here. They are the
same code, too.

>>> import asyncio
>>> from tupelo import aio
>>> from tupelo.aio.batteries import Counter
>>> async def main():
...     async with aio.connect("mem://awaited") as space:
...         return await Counter(space, "hits").add()
>>> asyncio.run(main())
1
"""

from tupelo.aio.gathering import Rows, gather
from tupelo.aio.pool import Pool
from tupelo.aio.queue import DeadItem, DeadItems, Delivery, Queue
from tupelo.aio.remote import RemoteFunction, worker
from tupelo.aio.service import Service, call
from tupelo.batteries.core.barrier import Barrier, BrokenBarrier, Latch
from tupelo.batteries.core.locks import Lock, Permit, RWLock, Semaphore
from tupelo.batteries.core.pool import Failure
from tupelo.batteries.core.values import Counter, Register

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
