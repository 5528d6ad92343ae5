"""The watcher of the workloads' tests, for checks of what it sees."""

from tests.workloads.conftest import watcher

__all__ = ["watcher"]
