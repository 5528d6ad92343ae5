"""What was measured of the interconnect of a node. Values only."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import combinations

from portal.ui.text import plural

SELF = "X"
# Widest first, as the legend of `nvidia-smi topo -m` has them; before them come NVLinks, most first.
PCIE_LINKS = ("PIX", "PXB", "PHB", "NODE", "SYS")
MIB_STEPS = ("MiB", "GiB", "TiB")
# Fits a bigint.
_WHOLE = re.compile(r"[0-9]{1,18}")


class UnreadableError(Exception):
    """`sentence`: which line cannot be read, and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


@dataclass(frozen=True)
class Links:
    """One row for each GPU: its link to each GPU, "X" to itself. NV18: 18 NVLinks; the others go over PCIe."""

    rows: tuple[tuple[str, ...], ...]

    @property
    def gpus(self) -> int:
        return len(self.rows)

    @cached_property
    def pairs(self) -> dict[str, int]:
        """How many pairs of GPUs have each link, the fastest first."""
        counted = Counter(self.rows[one][other] for one, other in combinations(range(self.gpus), 2))
        return {link: counted[link] for link in sorted(counted, key=_rank)}

    @cached_property
    def shape(self) -> tuple[tuple[str, ...], ...]:
        """Equal for equal links, in whatever order the GPUs are numbered."""
        return tuple(sorted(tuple(sorted(row)) for row in self.rows))

    @property
    def text(self) -> str:
        if len(self.pairs) == 1:
            return f"{plural(self.gpus, 'GPU')}, all {next(iter(self.pairs))}"
        parts = [f"{plural(count, 'pair')} {link}" for link, count in self.pairs.items()]
        return f"{plural(self.gpus, 'GPU')}: {', '.join(parts)}"


@dataclass(frozen=True)
class AllReduce:
    """Bus bandwidth of one message size, as all_reduce_perf of nccl-tests prints it: in GB/s."""

    gpus: int
    message_bytes: int
    bus_gb_s: Decimal

    @property
    def size(self) -> tuple[int, int]:
        """Figures of different sizes cannot be compared."""
        return self.gpus, self.message_bytes

    @property
    def on(self) -> str:
        return f"{plural(self.gpus, 'GPU')}, {bytes_text(self.message_bytes)}"

    @property
    def text(self) -> str:
        return f"all_reduce {rate(self.bus_gb_s)} ({self.on})"


@dataclass(frozen=True)
class NodeState:
    """What a node says of itself that a measurement depends on; "" if it does not say it."""

    uid: str = ""
    product: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Measurement:
    """The last of its kind for the node: either `links` or `all_reduce`. `state`: of the node when it was recorded."""

    node: str
    measured_on: date
    links: Links | None = None
    all_reduce: AllReduce | None = None
    by: str = ""
    state: NodeState = NodeState()

    @property
    def text(self) -> str:
        found = self.links or self.all_reduce
        return found.text if found is not None else ""


def whole_number(word: str) -> int | None:
    """None: it is none, or too large to be kept. str.isdigit() is no such test: int() cannot read "²"."""
    return int(word) if _WHOLE.fullmatch(word) else None


def rate(gb_s: Decimal) -> str:
    """371 GB/s, and 2.7 GB/s: three digits are more than two runs have in common."""
    return f"{gb_s:.0f} GB/s" if gb_s >= 100 else f"{gb_s:.1f} GB/s"


def bytes_text(size: int) -> str:
    """8 GiB; sizes that are no whole number of MiB stay in bytes."""
    if size % 2**20:
        return plural(size, "byte")
    value, step = size // 2**20, 0
    while value % 1024 == 0 and step + 1 < len(MIB_STEPS):
        value, step = value // 1024, step + 1
    return f"{value} {MIB_STEPS[step]}"


def _rank(link: str) -> tuple[int, int]:
    if link in PCIE_LINKS:
        return PCIE_LINKS.index(link) + 1, 0
    return 0, -(whole_number(link.removeprefix("NV")) or 0)
