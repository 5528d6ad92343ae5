"""The input of a contract and its parts."""

from __future__ import annotations

from dataclasses import dataclass

YES, PART, NO = "yes", "part", "no"


@dataclass(frozen=True)
class Axes:
    """Of one class, values as in GpuClass. `memory_mib`: of one unit, None when the nodes do not say.

    `resource` tells a slice that is sold under a name of its own from one sold as `nvidia.com/gpu`.
    """

    vendor: str
    partition: str
    sharing: str
    replicas: int
    memory_mib: int | None
    interface: str
    resource: str = ""

    @property
    def is_slice(self) -> bool:
        return self.partition != "none"

    @property
    def others(self) -> str:
        """Who may be on the same card or slice: "up to 3 others"."""
        return f"up to {self.replicas - 1} other{'' if self.replicas == 2 else 's'}"


@dataclass(frozen=True)
class Guarantee:
    """`level`: yes (yours), part (yours within limits) or no. `lead` and `text` make a sentence; `reason` another."""

    topic: str
    level: str
    lead: str
    text: str
    reason: str


@dataclass(frozen=True)
class Contract:
    """`neighbours`: a sentence. The tuples are sentences too, each with its reason: who it suits, who should not take
    it, what support answers with "that is how it works", and what it takes as an incident. `tier`: "" or "pilot".
    """

    promises: tuple[Guarantee, ...]
    neighbours: str
    suits: tuple[str, ...]
    avoid: tuple[str, ...]
    expected: tuple[str, ...]
    incident: tuple[str, ...]
    tier: str = ""


INTERRUPTION = Guarantee(
    "Interruption",
    PART,
    "Not on your own grant",
    "borrowed units are taken back when their owner needs them.",
    "The queue ends runs on borrowed units to give those back; a team's own grant makes way for no other team.",
)


def gib(mib: int) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"
