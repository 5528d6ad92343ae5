"""The watcher of the workloads' tests and the worker's look at a queue, for checks of what they see."""

from tests.support.cluster.queued import look
from tests.workloads.conftest import watcher

__all__ = ["look", "watcher"]
