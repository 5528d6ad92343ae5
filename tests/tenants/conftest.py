"""The worker's look at team A's queue."""

from tests.queued import look

__all__ = ["look"]
