"""The end of a log: whole lines, bounded whatever the container writes."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import pytest
import urllib3

from cluster.client import log_end
from cluster.client.log_end import LogEnd, LogRemoved, LogTooSlow, read_log_end


@dataclass
class Clock:
    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s


@dataclass
class Node:
    """Answers as the API server does: the last lines of what the container wrote."""

    written: bytes
    gap_s: float = 0.0
    clock: Clock = field(default_factory=Clock)
    asked: list[int] = field(default_factory=list)

    def open_log(self, *, tail_lines: int, **_place: Any) -> urllib3.BaseHTTPResponse:
        self.asked.append(tail_lines)
        lines = self.written.splitlines(keepends=True)[-tail_lines:]
        body = _Slow(b"".join(lines), self.clock, self.gap_s)
        return urllib3.HTTPResponse(body=body, preload_content=False)


class _Slow(io.BytesIO):
    """Each read takes `gap_s` on the clock."""

    def __init__(self, data: bytes, clock: Clock, gap_s: float) -> None:
        super().__init__(data)
        self.clock, self.gap_s = clock, gap_s

    def read1(self, size: int | None = -1, /) -> bytes:
        self.clock.now_s += self.gap_s
        return super().read1(size)

    def read(self, size: int | None = -1, /) -> bytes:
        self.clock.now_s += self.gap_s
        return super().read(size)


def end_of(node: Node, *, bytes_max: int = 1000, within_s: float = 30) -> LogEnd:
    return read_log_end(node, namespace="a", pod="p", container="c", bytes_max=bytes_max, within_s=within_s)  # type: ignore[arg-type]


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(count))


def test_a_short_log_is_complete() -> None:
    assert end_of(Node(b"one\ntwo")) == LogEnd(b"one\ntwo", False)
    assert end_of(Node(b"")) == LogEnd(b"", False)
    exactly = numbered(log_end.LINES)
    assert end_of(Node(exactly), bytes_max=len(exactly)) == LogEnd(exactly, False)


def test_of_a_long_one_the_last_whole_lines_are_kept() -> None:
    found = end_of(Node(numbered(500)))
    assert found.is_truncated
    assert len(found.data) <= 1000
    assert found.data.startswith(b"line ")
    assert found.data.endswith(b"line 498\nline 499\n")
    more = end_of(Node(numbered(log_end.LINES + 500)), bytes_max=10**6)
    assert more == LogEnd(numbered(log_end.LINES + 500)[len(numbered(500)) :], True)


def test_of_very_long_lines_fewer_are_read() -> None:
    node = Node(b"".join(b"%d %s\n" % (number, b"x" * 16_000) for number in range(1000)))
    found = end_of(node, bytes_max=100_000)
    assert node.asked == [log_end.LINES + 1, log_end.FEWER_LINES + 1]
    assert found.is_truncated
    assert found.data.splitlines()[-1].startswith(b"999 x")


def test_a_slow_node_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(numbered(200_000), gap_s=2)
    monkeypatch.setattr(log_end, "time", node.clock)
    with pytest.raises(LogTooSlow):
        end_of(node, within_s=1)
    assert node.clock.now_s == 2, "no read begins after the time is over"


@pytest.mark.parametrize("text", log_end.NO_LOG_TEXTS)
def test_what_a_node_says_of_a_removed_log_is_no_log(text: bytes) -> None:
    with pytest.raises(LogRemoved):
        end_of(Node(text + b"containerd://0123"))
    assert end_of(Node(b"first\n" + text)) == LogEnd(b"first\n" + text, False)
