"""The worker's look at team A's queue."""

from tests.support.cluster.queued import look

__all__ = ["look"]
