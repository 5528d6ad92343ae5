"""When an independent client sees a pod end, and how long after that its units still count as used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from devcluster.client.list_watch import ListWatch
from tests.load.churn.audit import Accounts

Wait = Callable[[Callable[[], object]], None]


@dataclass
class Ends:
    """`seen`: pod → the time of its end, or of its deletion if no end was reported."""

    accounts: Accounts
    seen: dict[str, float] = field(default_factory=dict)

    def freed_after_s(self, pod: str, wait: Wait) -> float:
        """Seconds from its end until ResourceQuota, ClusterQueue and the portal count no unit; nothing else runs."""
        wait(lambda: pod in self.seen)
        wait(lambda: not self.accounts.holders())
        return time.monotonic() - self.seen[pod]

    def _follow(self, pods: ListWatch) -> None:
        for kind, pod in pods:
            if kind == "DELETED" or pod["status"]["phase"] in ("Succeeded", "Failed"):
                self.seen.setdefault(pod["metadata"]["name"], time.monotonic())


@contextmanager
def heard(accounts: Accounts) -> Iterator[Ends]:
    found = Ends(accounts)
    pods = ListWatch(accounts.admin, "v1/pods", namespace=accounts.namespace.name)
    thread = threading.Thread(target=found._follow, args=(pods,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        pods.stop()
        thread.join()
