"""A log over broken connections: each line occurs once, and none is lost."""

from __future__ import annotations

import pytest

from gpu_cli.log_stream import CONTROL, REPEATED, lines, without_repeats
from workloads.gateway.logs import LINES_FOLLOWED


def test_lines_come_whole_whatever_the_parts_are() -> None:
    parts = [b"one\ntw", b"o\n\xc3", b"\xa4\r50%\r", b"100%\nend"]
    assert list(lines(parts, is_all=True)) == ["one\n", "two\n", "ä\r50%\r100%\n", "end"]
    assert list(lines(parts, is_all=False)) == ["one\n", "two\n", "ä\r50%\r100%\n"]


@pytest.mark.parametrize(
    ("printed", "found", "new"),
    [
        ("", "abc", "abc"),
        ("abc", "abcde", "de"),
        ("abc", "abc", ""),
        ("abc", "bcd", "d"),
        ("abc", "xyz", "xyz"),  # another pod
        ("aaa", "aaaa", "a"),
        ("abab", "abababc", "abc"),
        ("abcab", "abx", "x"),
        ("abcab", "abcabd", "d"),
        ("abc", "ab", "ab"),  # shorter than before: another log that begins with the same lines
    ],
)
def test_what_is_new(printed: str, found: str, new: str) -> None:
    assert "".join(without_repeats(list(printed), found)) == new


@pytest.mark.parametrize("length", range(9))
def test_nothing_is_lost_or_said_twice(length: int) -> None:
    """A log of different lines, cut anywhere, continues with the last five earlier lines, or with all of them."""
    log = [f"{number}\n" for number in range(length)]
    for seen in range(length + 1):
        again = log[max(0, min(seen, length - 5)) :]
        assert log[:seen] + list(without_repeats(log[:seen][-5:], again)) == log


def test_as_much_is_kept_as_comes_again() -> None:
    assert REPEATED == LINES_FOLLOWED


def test_a_terminal_gets_colours_and_nothing_that_moves_it() -> None:
    said = "\x1b[31mred\x1b[0m \x1b[2J\x1b]0;title\x07 50%\r\tend\n"
    safe = CONTROL.sub(lambda found: found[0] if found[0].endswith("m") else "", said)
    assert safe == "\x1b[31mred\x1b[0m [2J]0;title 50%\r\tend\n"
