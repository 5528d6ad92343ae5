"""Reads the end of the log of one container, in bounded time and memory.

`limitBytes` of the API would cut off the end, so the last lines are requested and only their last bytes are kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from urllib3.exceptions import HTTPError

from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube

LINES = 2000
# If the lines are so long that LINES of them are more than READ_BYTES, this many are read instead. A node stores a line
# of more than 16 KiB as several.
FEWER_LINES = 200
READ_BYTES = 4 * 1024 * 1024
SILENCE_S = 3.0
CHUNK = 64 * 1024
# What nodes answer as the text of a log that they do not have any more, with the status 200.
NO_LOG_TEXTS = (b"unable to retrieve container logs for ", b"failed to try resolving symlinks in path ")


class LogTooSlow(ClusterUnavailable):
    """It did not arrive in time."""


class LogRemoved(Exception):
    """The node has removed the log of a container that still has a pod."""


@dataclass(frozen=True)
class LogEnd:
    """Whole lines. `is_truncated`: there are earlier lines."""

    data: bytes
    is_truncated: bool


def read_log_end(kube: Kube, *, namespace: str, pod: str, container: str, bytes_max: int, within_s: float) -> LogEnd:
    """Raises ClusterRefused, ClusterUnavailable (LogTooSlow after `within_s`), LogRemoved."""
    ends = time.monotonic() + within_s
    found = _read(kube, namespace, pod, container, LINES, bytes_max, ends)
    return found or _read(kube, namespace, pod, container, FEWER_LINES, bytes_max, ends) or LogEnd(b"", True)


def _read(
    kube: Kube, namespace: str, pod: str, container: str, lines: int, bytes_max: int, ends: float
) -> LogEnd | None:
    """Returns None if the lines are more than READ_BYTES."""
    silence_s = max(0.1, min(SILENCE_S, ends - time.monotonic()))
    # One more than is kept, which shows whether there are earlier lines.
    opened = kube.open_log(
        namespace=namespace, pod=pod, container=container, follow=False, tail_lines=lines + 1, silence_s=silence_s
    )
    kept, size, count = b"", 0, 0
    try:
        while chunk := opened.read1(CHUNK):
            kept, size, count = (kept + chunk)[-bytes_max:], size + len(chunk), count + chunk.count(b"\n")
            if size > READ_BYTES:
                return None
            if time.monotonic() > ends:
                raise LogTooSlow(f"The log of {pod} did not arrive in time.")
    except HTTPError as error:
        raise LogTooSlow(f"The log of {pod} was cut off: {type(error).__name__}.") from error
    finally:
        opened.close()
    if count <= 1 and kept.startswith(NO_LOG_TEXTS):
        raise LogRemoved
    if size <= len(kept) and count <= lines:
        return LogEnd(kept, False)
    return LogEnd(kept.partition(b"\n")[2] or kept, True)
