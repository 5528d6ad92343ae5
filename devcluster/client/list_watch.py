"""List and watch: returns every object of a resource, then each change, and continues after errors."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

from devcluster.client.kube import Api, ApiError, Watch
from devcluster.client.types import Json

RETRY_S = 1.0
WATCH_S = 300.0


class ListWatch:
    """Iterates over (type, object): ADDED for existing and new objects, MODIFIED for changed ones, DELETED for removed
    ones, including those that were removed while no watch was open.

    After an error (also an outage of the API server, or an expired resourceVersion) it waits a second and lists again;
    objects that are already known are then returned as MODIFIED, whether they changed or not. `stop()` from any thread
    ends the iteration.
    """

    def __init__(self, api: Api, resource: str, *, namespace: str = "", labels: str = "", fields: str = "") -> None:
        self.api = api
        self.resource = resource
        self._where = {"namespace": namespace, "labels": labels, "fields": fields}
        self._seen: dict[str, Json] = {}  # by uid
        self._stopping = threading.Event()
        self._watch: Watch | None = None

    def __iter__(self) -> Iterator[tuple[str, Json]]:
        while not self._stopping.is_set():
            try:
                yield from self._once()
            except (ApiError, OSError, http.client.HTTPException, ValueError):
                self._stopping.wait(RETRY_S)

    def stop(self) -> None:
        self._stopping.set()
        if self._watch is not None:
            self._watch.stop()

    def _once(self) -> Iterator[tuple[str, Json]]:
        page = self.api.list_page(self.resource, **self._where)
        present = {obj["metadata"]["uid"] for obj in page["items"]}
        for uid in self._seen.keys() - present:
            yield "DELETED", self._seen.pop(uid)
        for obj in page["items"]:
            yield self._note("MODIFIED" if obj["metadata"]["uid"] in self._seen else "ADDED", obj)
        version = page["metadata"]["resourceVersion"]
        while not self._stopping.is_set():
            self._watch = self.api.watch(self.resource, **self._where, resource_version=version, timeout_s=WATCH_S)
            if self._stopping.is_set():  # stop() was called before the watch was opened
                self._watch.stop()
            for kind, obj in self._watch:
                version = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    yield self._note(kind, obj)

    def _note(self, kind: str, obj: Json) -> tuple[str, Json]:
        if kind == "DELETED":
            self._seen.pop(obj["metadata"]["uid"], None)
        else:
            self._seen[obj["metadata"]["uid"]] = obj
        return kind, obj
