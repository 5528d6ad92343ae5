"""The input of a contract and its parts."""

from __future__ import annotations

from dataclasses import dataclass

YES, PART, NO = "yes", "part", "no"
# With more time-sliced replicas of a GPU, pods wait for one another longer than people expect of a GPU.
FEW_REPLICAS = 4


@dataclass(frozen=True)
class Axes:
    """Axes of one class, values as in GpuClass. `memory_mib`: of one unit, None if the nodes do not report it.

    `resource` distinguishes a slice with its own resource name from one exposed as `nvidia.com/gpu`. `slices_on_gpu`:
    the most slices of this partition that one GPU has; None if its profiles are not known. `is_spot`: the provider may
    reclaim its nodes at any time.
    """

    vendor: str
    partition: str
    sharing: str
    replicas: int
    memory_mib: int | None
    interface: str
    resource: str = ""
    slices_on_gpu: int | None = None
    is_spot: bool = False

    @property
    def is_slice(self) -> bool:
        return self.partition != "none"

    @property
    def others(self) -> str:
        """Which pods may be on the same GPU or slice: "up to 3 other pods"."""
        return f"up to {self.replicas - 1} other {'pod' if self.replicas == 2 else 'pods'}"


@dataclass(frozen=True)
class Guarantee:
    """`level`: yes (isolated), part (within limits) or no. `lead` and `text` make a sentence; `reason` another."""

    topic: str
    level: str
    lead: str
    text: str
    reason: str


@dataclass(frozen=True)
class Contract:
    """`neighbours`: a sentence. The tuples are sentences too, each with its reason: which users it suits, which it does
    not suit, what support treats as expected behaviour, and what it treats as an incident. `tier`: "" or "pilot".
    """

    promises: tuple[Guarantee, ...]
    neighbours: str
    suits: tuple[str, ...]
    avoid: tuple[str, ...]
    expected: tuple[str, ...]
    incident: tuple[str, ...]
    tier: str = ""


INTERRUPTION = Guarantee(
    "Preemption",
    PART,
    "Not on your own quota",
    "borrowed units are reclaimed when their owner needs them.",
    "The queue preempts runs on borrowed units; runs on a team's own quota are not preempted for another team.",
)


SPOT_NODES = Guarantee(
    "Spot nodes",
    NO,
    "Interrupted at any time",
    "the provider can reclaim a node within minutes, on your own quota too.",
    "Its nodes are spot nodes. A run on one is told to end with SIGTERM and restarts when another node is there.",
)


def gib(mib: int, decimals: int = 1) -> str:
    """`9.6 GiB`, `80 GiB`."""
    return f"{mib / 1024:.{decimals}f}".rstrip("0").rstrip(".") + " GiB"


def gib_apart(*sizes: int) -> list[str]:
    """Sizes to compare: as many decimals as distinguish them, three at most (1 MiB)."""
    for decimals in (1, 2, 3):
        found = [gib(size, decimals) for size in sizes]
        if len(set(found)) == len(set(sizes)):
            break
    return found
