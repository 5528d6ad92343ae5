"""Reads what all_reduce_perf of NVIDIA's nccl-tests prints, wherever it is in a log. Pure.

The line of the largest message counts, and of it the bus bandwidth out of place: small messages measure latency.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from catalog.interconnect.types import AllReduce, UnreadableError, whole_number

COMMAND = "all_reduce_perf"
# As it is kept: less would be kept as 0.
STEP = Decimal("0.01")
AGAIN = f"Paste the whole output of {COMMAND}, with its header and the lines of the ranks."
_RANK = re.compile(r"Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+")
_NAMED = re.compile(r"Collective test starting:\s*(\S+)")
# mpirun can put the rank before each line.
_MPI = re.compile(r"^\s*\[\d+(?:,\d+)?\](?:<std(?:out|err)>:)?")


def all_reduce_in(lines: Sequence[str]) -> AllReduce | None:
    """None: there is no such output. Raises UnreadableError."""
    clean = [_MPI.sub("", line) for line in lines]
    headers = [(number, words) for number, line in enumerate(clean) if "busbw" in (words := line.strip(" #").split())]
    if not headers:
        return None
    start, names = headers[0]
    column = names.index("busbw")
    if names[0] != "size" or "redop" not in names[:column]:
        raise UnreadableError(f"Line {start + 1}: the header is not size … redop … busbw. {AGAIN}")
    _check_test(clean)
    gpus = _gpus(clean[:start])
    found: list[tuple[int, Decimal]] = []
    for number, line in enumerate(clean[start + 1 :], start + 2):
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        if len(words) <= column:
            raise UnreadableError(f"Line {number}: it has no value for busbw. {AGAIN}")
        if words[names.index("redop")] != "sum":
            text = f"Line {number}: it is not of {COMMAND}, whose redop is sum. Record only {COMMAND}."
            raise UnreadableError(text)
        size = whole_number(words[0])
        if size is None:
            raise UnreadableError(f"Line {number}: “{words[0][:20]}” is no size in bytes. {AGAIN}")
        found.append((size, _number(words[column], number)))
    if not found:
        raise UnreadableError(f"Line {start + 1}: there is no result below the header. {AGAIN}")
    largest, bandwidth = max(found)
    if not bandwidth:
        text = f"The bus bandwidth of the largest message is below {STEP} GB/s: the test measured nothing."
        raise UnreadableError(f"{text} Run it with all GPUs of the node.")
    return AllReduce(gpus, largest, bandwidth)


def _check_test(lines: Sequence[str]) -> None:
    for number, line in enumerate(lines, 1):
        if (named := _NAMED.search(line)) and named[1] != COMMAND:
            raise UnreadableError(f"Line {number}: it is of {named[1][:40]}. Record only {COMMAND}.")
        if "Out of bounds values" in line and "OK" not in line:
            text = (
                "results were wrong, so its figures say nothing. Check the GPUs of the node (dcgmi diag), then measure."
            )
            raise UnreadableError(f"Line {number}: {text}")


def _gpus(lines: Sequence[str]) -> int:
    """Each rank is one GPU."""
    ranks: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if found := _RANK.search(line):
            rank = whole_number(found[1])
            if rank is None:
                raise UnreadableError(f"Line {number}: “{found[1][:20]}” is no number of a rank. {AGAIN}")
            ranks[rank] = found[2]
    if not ranks:
        raise UnreadableError(f"There is no line “Rank 0 … device 0”, which says how many GPUs took part. {AGAIN}")
    if len(hosts := set(ranks.values())) > 1:
        text = f"{COMMAND} ran on {len(hosts)} hosts; a measurement of a node is of its own GPUs. Run it on one node."
        raise UnreadableError(text)
    if len(ranks) < 2:
        raise UnreadableError(f"{COMMAND} ran on 1 GPU, which has no link. Run it with all GPUs of the node.")
    return len(ranks)


def _number(word: str, number: int) -> Decimal:
    try:
        found = Decimal(word)
    except InvalidOperation:
        found = Decimal("nan")
    if not found.is_finite() or not 0 <= found < 100_000:
        raise UnreadableError(f"Line {number}: “{word[:20]}” is no bandwidth in GB/s. {AGAIN}")
    return found.quantize(STEP)
