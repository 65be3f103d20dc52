"""Waiting for so many results, for asyncio: `gather` of `tupelo.batteries`, with its types."""

from tupelo.batteries.core.gathering import Rows, gather

__all__ = ["Rows", "gather"]
