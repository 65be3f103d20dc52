"""The batteries, each written once: as they are for asyncio, inside the blocking ones of `run`."""
