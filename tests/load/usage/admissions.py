"""When Kueue had admitted the Jobs of a workload, as a client of its own reads the conditions of their Workloads."""

from __future__ import annotations

import re
import threading
from datetime import datetime

from devcluster.client.kube import Api
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json
from tests.load.usage.running_demo import WORKLOADS

# From, until; None: still.
Period = tuple[datetime, datetime | None]


class Admissions:
    """From Admitted=True to Admitted=False, Finished=True or the deletion. A preempted run is resumed in its Job, or in
    that of the next run if its pod's end was seen first: both are Jobs of the workload.
    """

    def __init__(self, admin: Api, namespace: str, workload: str) -> None:
        self._watch = ListWatch(admin, WORKLOADS, namespace=namespace)
        self._is_of_it = re.compile(rf"{re.escape(workload)}-\d+").fullmatch
        self._ends: dict[tuple[str, str], str | None] = {}  # by Job and start
        self._waiting: dict[str, bool] = {}  # by uid
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Admissions:
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.stop()
        self._thread.join(10)

    @property
    def periods(self) -> list[Period]:
        found = [(datetime.fromisoformat(start), end) for (_, start), end in self._ends.copy().items()]
        return sorted((start, datetime.fromisoformat(end) if end else None) for start, end in found)

    @property
    def jobs(self) -> int:
        return len({job for job, _ in self._ends.copy()})

    @property
    def is_held(self) -> bool:
        return None in self._ends.copy().values()

    @property
    def is_waiting(self) -> bool:
        """Whether one of its Jobs is in the queue."""
        return any(self._waiting.copy().values())

    def _read(self) -> None:
        for what, found in self._watch:
            job = (found["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
            if not self._is_of_it(job):
                continue
            if what == "DELETED":
                self._waiting.pop(found["metadata"]["uid"], None)
                # An object without a finalizer has no such time; then Kueue has ended the admission before.
                self._close(job, found["metadata"].get("deletionTimestamp"))
            else:
                self._see(job, found)

    def _see(self, job: str, found: Json) -> None:
        conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", ())}
        times = {name: one["lastTransitionTime"] for name, one in conditions.items() if one["status"] == "True"}
        self._waiting[found["metadata"]["uid"]] = "Admitted" not in times and "Finished" not in times
        if "Admitted" in times:
            self._ends.setdefault((job, times["Admitted"]), None)
            if "Finished" in times:
                self._close(job, times["Finished"])
        elif "Admitted" in conditions:
            self._close(job, conditions["Admitted"]["lastTransitionTime"])

    def _close(self, job: str, at: str | None) -> None:
        for key, end in self._ends.copy().items():
            if key[0] == job and end is None:
                self._ends[key] = at
