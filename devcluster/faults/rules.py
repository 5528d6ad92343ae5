"""Rules: to which calls to the API server a fault applies, and which fault. No I/O."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devcluster.client.types import Json

READS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})


@dataclass(frozen=True)
class Call:
    """One request, described as in RBAC. `apply` is a `patch` with the content type of server-side apply. `limit`: of a
    list; 0 means none.
    """

    verb: str
    resource: str = ""  # plural, with subresource: pods, pods/log
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    group: str = ""
    path: str = ""
    limit: int = 0

    @property
    def is_full_list(self) -> bool:
        """Whether it lists all objects. A list with limit=1 only checks that the server answers, or reads the current
        resourceVersion.
        """
        return self.verb == "list" and self.limit != 1


def call_of(method: str, target: str, content_type: str = "") -> Call:
    parts = urllib.parse.urlsplit(target)
    query = urllib.parse.parse_qs(parts.query)
    words = [urllib.parse.unquote(word) for word in parts.path.split("/") if word]
    group = ""
    if words[:1] == ["api"]:
        words = words[2:]
    elif words[:1] == ["apis"]:
        group, words = "".join(words[1:2]), words[3:]
    else:
        words = []
    if not words:  # health, discovery
        return Call(verb=method.lower(), group=group, path=parts.path)
    namespace = ""
    if words[:1] == ["namespaces"] and len(words) > 2:
        namespace, words = words[1], words[2:]
    resource, name = "/".join([*words[:1], *words[2:]]), words[1] if len(words) > 1 else ""
    watching = query.get("watch", ["0"])[0] in ("1", "true")
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete" if name else "deletecollection"}
    verbs["GET"] = "watch" if watching else "get" if name else "list"
    verb = verbs.get(method, method.lower())
    return Call(
        verb="apply" if verb == "patch" and "apply-patch" in content_type else verb,
        resource=resource,
        namespace=namespace,
        name=name,
        dry_run="dryRun" in query,
        group=group,
        path=parts.path,
        limit=int(query.get("limit", ["0"])[0]),
    )


@dataclass
class Rule:
    """Applies to `times` matching calls (None: to all), beginning with the `nth`. Created by `ApiProxy.when`.

    A rule has one fault. Faults of a call: `delay`, `refuse`, `drop_before`, `drop_answer`, `status`, `call_before`,
    `call_after`. Faults of the events of a watch: `duplicate`, `reorder`, `drop_event`, `gone`, `silence`; for these,
    `nth` and `times` count events, except bookmarks.
    """

    verbs: frozenset[str]
    resource: str = ""
    namespace: str = ""
    name: str = ""
    nth: int = 1
    times: int | None = 1
    predicate: Callable[[Call, Json | None], bool] | None = None  # the event is None for a fault of a call
    fault: str = ""
    argument: Any = None
    seen: int = 0  # calls or events that matched
    struck: int = 0  # how often the fault was carried out
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _hit: threading.Condition = field(default_factory=threading.Condition, repr=False)

    # faults of a call

    def delay(self, seconds: float) -> Rule:
        return self._do("delay", seconds)

    def refuse(self) -> Rule:
        """Resets the connection (RST) without an answer; the API server never receives the request."""
        return self._do("refuse")

    def drop_before(self) -> Rule:
        """Closes the connection (FIN) without an answer; the API server never receives the request."""
        return self._do("drop_before")

    def drop_answer(self) -> Rule:
        """The API server carries out the request, but the client gets no answer: the connection is closed."""
        return self._do("drop_answer")

    def status(self, code: int, body: Json | None = None) -> Rule:
        """The proxy answers with this status. The API server never receives the request."""
        return self._do("status", (code, body))

    def call_before(self, action: Callable[[], object]) -> Rule:
        """Simulates a crash: `action` runs when the request has arrived and has not been forwarded. If the client is
        disconnected after it, the request is not forwarded.
        """
        return self._do("call_before", action)

    def call_after(self, action: Callable[[], object]) -> Rule:
        """Simulates a crash: `action` runs when the API server has carried out the request and the client has no answer
        yet.
        """
        return self._do("call_after", action)

    # faults of a watch

    def duplicate(self) -> Rule:
        return self._do("duplicate")

    def reorder(self) -> Rule:
        """Sends the event after the next one."""
        return self._do("reorder")

    def drop_event(self) -> Rule:
        return self._do("drop_event")

    def gone(self) -> Rule:
        """Sends an ERROR event with code 410 instead of the event (the resourceVersion is too old, so the client must
        list again), and ends the watch.
        """
        return self._do("gone")

    def silence(self) -> Rule:
        """Sends nothing from this event on, not even bookmarks; the connection stays open."""
        return self._do("silence")

    # matching and counting

    def wait(self, timeout_s: float = 20.0, *, times: int = 1) -> None:
        """Waits until the fault has been carried out `times` times. Raises TimeoutError."""
        with self._hit:
            if not self._hit.wait_for(lambda: self.struck >= times, timeout_s):
                raise TimeoutError(f"{self.fault} was done {self.struck} of {times} times; {self.seen} matched.")

    @property
    def of_events(self) -> bool:
        return self.fault in ("duplicate", "reorder", "drop_event", "gone", "silence")

    def strikes(self, call: Call, event: Json | None = None) -> bool:
        """Returns whether the fault applies to this call or event. It counts matches, so it must be called exactly once
        for each.
        """
        if not self._matches(call, event):
            return False
        with self._lock:
            self.seen += 1
            return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)

    def note(self) -> None:
        with self._hit:
            self.struck += 1
            self._hit.notify_all()

    def _matches(self, call: Call, event: Json | None) -> bool:
        resource = self.resource in ("", call.resource)
        place = self.namespace in ("", call.namespace) and self.name in ("", call.name)
        if not self.fault or call.verb not in self.verbs or not resource or not place:
            return False
        if (event is not None) != self.of_events or (event is not None and event["type"] == "BOOKMARK"):
            return False
        return self.predicate is None or self.predicate(call, event)

    def _do(self, fault: str, argument: Any = None) -> Rule:
        self.fault, self.argument = fault, argument
        return self
