"""Reads the matrix of `nvidia-smi topo -m`, wherever it is in a log. Pure.

Columns and rows of network cards, CPUs and NUMA nodes are left out: what counts here is between GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from catalog.interconnect.types import PCIE_LINKS, SELF, Links, UnreadableError

COMMAND = "nvidia-smi topo -m"
AGAIN = f"Paste the whole output of {COMMAND}, without line breaks inside a row."
_GPU = re.compile(r"GPU[0-9]{1,4}")
_NVLINKS = re.compile(r"NV[0-9]{1,3}")


def links_in(lines: Sequence[str]) -> Links | None:
    """None: there is no matrix. Raises UnreadableError."""
    start = next((number for number, line in enumerate(lines) if _is_header(line.split())), None)
    if start is None:
        return None
    names = _gpus(lines[start].split())
    if len(names) < 2:
        text = f"Line {start + 1}: {COMMAND} shows 1 GPU, which has no link. Measure with all GPUs of the node."
        raise UnreadableError(text)
    if len(set(names)) < len(names):
        raise UnreadableError(f"Line {start + 1}: the header has a GPU twice. {AGAIN}")
    below = [*lines[start + 1 :], *[""] * len(names)]
    rows = [_row(names, start + 2 + at, below[at], name) for at, name in enumerate(names)]
    for at, name in enumerate(names):
        for before in range(at):
            if rows[at][before] != rows[before][at]:
                raise UnreadableError(
                    f"Line {start + 2 + at}: {name} has {rows[at][before]} to {names[before]}, and line "
                    f"{start + 2 + before} says {rows[before][at]}. {AGAIN}"
                )
    return Links(tuple(rows))


def _row(names: Sequence[str], number: int, line: str, expected: str) -> tuple[str, ...]:
    """`number` of the line, from 1."""
    words = line.split()
    if not words or words[0] != expected:
        raise UnreadableError(f"Line {number}: the row of {expected} is missing. {AGAIN}")
    cells = words[1 : 1 + len(names)]
    if len(cells) < len(names):
        raise UnreadableError(f"Line {number}: {expected} has {len(cells)} of {len(names)} links. {AGAIN}")
    for name, cell in zip(names, cells, strict=True):
        if not _is_link(cell) or (cell == SELF) != (name == expected):
            raise UnreadableError(
                f"Line {number}: “{cell[:20]}” is no link of {expected} to {name} (X to itself, NV and a number, "
                f"{', '.join(PCIE_LINKS)}). {AGAIN}"
            )
    return tuple(cells)


def _is_header(words: Sequence[str]) -> bool:
    """A row has the link of its GPU after the name, and the header another name."""
    return bool(words) and words[0] == "GPU0" and (len(words) == 1 or words[1] == "CPU" or not _is_link(words[1]))


def _is_link(word: str) -> bool:
    return word == SELF or word in PCIE_LINKS or _NVLINKS.fullmatch(word) is not None


def _gpus(words: Sequence[str]) -> list[str]:
    """They come first."""
    found = []
    for word in words:
        if not _GPU.fullmatch(word):
            break
        found.append(word)
    return found
