"""No pattern of the product takes long for a text that somebody made for it.

Anybody may send thousands of characters in a request line, a pod's message or a form. A pattern whose time grows with a
power of the length holds up all threads of the process. Here are all patterns with 2,000 characters, as long as most
messages and form fields, and those of log lines with as many as a line may have. The limit is far from what one reading
takes (milliseconds) and from what such a pattern takes (seconds), so that a loaded machine does not matter.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.ops import redaction
from tests.support.source import ROOT, product_modules

LENGTH = 2_000
LIMIT_S = 0.5
SEPARATORS = ("", " ", "-", ".", "=")
APART = ("devcluster", "cli")  # they read texts of their own


def modules() -> list[str]:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in product_modules()]
    return [name for name in names if not name.startswith(APART) and not name.endswith("__init__")]


def patterns_of(module: str) -> Iterator[re.Pattern[str]]:
    """Its own patterns, alone and in tuples, lists and maps."""
    if "re.compile" not in Path(ROOT, *module.split(".")).with_suffix(".py").read_text():
        return
    waiting = [value for name, value in vars(importlib.import_module(module)).items() if not name.startswith("__")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()


def texts_for(pattern: re.Pattern[str], length: int = LENGTH) -> Iterator[str]:
    """Its words, over and over: with nothing between them, and with what may be between them."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    words = {*re.findall(r"(?<!\\)[A-Za-z0-9/:@]{2,}", source), "a", "1", "("}
    for word in sorted(words):
        for separator in SEPARATORS:
            pumped = (word + separator) * (length // len(word + separator))
            yield pumped
            yield f"{word} {separator * length}"


PATTERNS = {f"{module} {found.pattern[:50]}": found for module in modules() for found in patterns_of(module)}


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 60


def took_s(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
def test_a_made_up_text_takes_no_time(pattern: re.Pattern[str]) -> None:
    is_bytes = isinstance(pattern.pattern, bytes)  # such a pattern reads a page as it is sent
    for text in texts_for(pattern):
        read: Any = text.encode() if is_bytes else text
        nothing: Any = b"" if is_bytes else ""
        took = took_s(lambda read=read, nothing=nothing: (pattern.sub(nothing, read), pattern.fullmatch(read)))
        assert took < LIMIT_S, f"{took:.1f} s for {text[:40]}…"


def test_a_made_up_log_line_takes_no_time() -> None:
    for text in {text for pattern, _ in redaction.PATTERNS for text in texts_for(pattern, redaction.TEXT_MAX)}:
        took = took_s(lambda text=text: redaction.SecretRedactor().text(text))  # type: ignore[misc]
        assert took < LIMIT_S, f"{took:.1f} s for {text[:40]}…"
