"""Maps responses of the API server to exceptions: retry later, show to users, not found, conflict, too old."""

from __future__ import annotations

import json
from typing import Any

from cluster.client.secret_scrubbing import scrub_secret_values
from cluster.observe_only.queries import WAITING
from portal.core.due import TryLater

TEXT_LIMIT = 300
UNAVAILABLE = "cluster_unavailable"
# A server that asks for more is asked again after a minute.
LONGEST_PAUSE_S = 60.0


class ClusterUnavailable(TryLater):
    """No response, or a temporary one: time-out, 429, 5xx, a webhook that is down, a namespace being deleted.

    `after_s`: the server asked for a pause of so many seconds.
    """

    def __init__(self, text: str, *, after_s: float = 0.0) -> None:
        super().__init__(UNAVAILABLE, text, after_s=after_s)


class ObserveOnly(ClusterUnavailable):
    """The portal only observes the cluster, so this write was not sent. The row waits until an operator ends that."""

    def __init__(self, method: str, path: str) -> None:
        super().__init__(f"Waiting: observe only. The portal writes nothing to the cluster. Not sent: {method} {path}")
        self.code = WAITING


class OtherCluster(ClusterUnavailable):
    """The API server is not the cluster that the rows describe, so nothing was asked or sent."""

    def __init__(self) -> None:
        super().__init__(
            "The portal reaches another cluster than before. It reads and writes nothing there until an operator "
            "confirms it with manage.py compare --new-cluster."
        )


class ClusterRefused(Exception):
    """The cluster refused a request (403, 409 by content, 422). `text`: the first 300 characters of the reason."""

    def __init__(self, status: int, reason: str, text: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(f"{status} {reason}: {text}")
        self.status = status
        self.reason = reason
        self.text = text[:TEXT_LIMIT]
        self.causes = causes


class NotFound(ClusterRefused):
    """404: no such object, or its namespace is absent."""


class Conflict(ClusterRefused):
    """409: the name is taken, or no object has the uid in the request."""


class Gone(Exception):
    """410: the resource version is too old; list again."""


def pause_s(retry_after: str | None) -> float:
    """The seconds of a header `Retry-After`. The API server sends no dates."""
    return min(float(retry_after), LONGEST_PAUSE_S) if retry_after and retry_after.isdecimal() else 0.0


def error_from_status(status: int, data: bytes, path: str, sent: Any = None, *, after_s: float = 0.0) -> Exception:
    """Maps a Kubernetes Status to an exception. A body that is not a Status is dropped: it could be anything."""
    try:
        answer = json.loads(data)
    except ValueError:
        answer = {}
    if not isinstance(answer, dict) or answer.get("kind") != "Status":
        answer = {}
    reason = str(answer.get("reason", ""))
    text = scrub_secret_values(str(answer.get("message", "")), sent) or f"HTTP {status}"
    details = answer.get("details") or {}
    told = (str(cause.get("reason") or cause.get("message", "")) for cause in details.get("causes") or [])
    causes = tuple(scrub_secret_values(text, sent) for text in told)
    if status == 410 or reason in ("Expired", "Gone"):
        return Gone(text)
    # 401: our own token is being renewed, or could not be checked; it says nothing about the request.
    if status in (401, 429) or status >= 500 or "NamespaceTerminating" in causes:
        return ClusterUnavailable(text[:TEXT_LIMIT], after_s=after_s)
    if status == 403 and "status unknown for quota" in text:
        # The quota was created just now and its use is not counted yet.
        return ClusterUnavailable(text[:TEXT_LIMIT])
    kind = {404: NotFound, 409: Conflict}.get(status, ClusterRefused)
    return kind(status, reason or str(status), text or path, causes)
