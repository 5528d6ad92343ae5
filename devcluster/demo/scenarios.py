"""What `run.py demo` can begin with: the everyday demo, or one that is named by `--scenario`.

Each has people, hardware and a state directory of its own: starting one does not change the data of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from devcluster.processes.console import UserError


@dataclass(frozen=True)
class Scenario:
    """`cast`: name, role as a person would say it, team; an owner's team is made. `storage`: who was granted how many
    GiB, by name, team and number. `notebooks`: how many run on this machine at a time. `about`: one sentence, "" for
    the everyday demo; `to_try`: with {url} for the portal's address.
    """

    name: str
    hardware: str
    cast: tuple[tuple[str, str, str], ...]
    storage: tuple[tuple[str, str, int], ...]
    notebooks: int
    about: str
    to_try: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Of its state, below .run."""
        return f"demo-{self.name}" if self.name else "demo"


# Charlie is a stranger to team A.
EVERYDAY = Scenario(
    name="",
    hardware="mixed",
    cast=(
        ("Alice", "owner", "team-a"),
        ("Bob", "member", "team-a"),
        ("Charlie", "owner", "team-c"),
        ("Dana", "approver of all classes", ""),
        ("Olga", "operator and administrator", ""),
    ),
    storage=(("alice", "team-a", 100), ("charlie", "team-c", 200)),
    notebooks=6,
    about="",
    to_try=(
        "As Alice: ask for two A100 cards on the page of team-a. As Dana: decide, looking at what it would change.",
        "As Alice: launch a notebook, watch it queue and start, open it, compute 6*7 on a simulated node.",
        "With Alice's token from .run/demo.json:\n     curl -H 'Authorization: Bearer TOKEN' {url}/api/v1/me",
    ),
)
# What they hold and run: devcluster/demo/contention.py.
MORNING = Scenario(
    name="morning",
    hardware="morning",
    cast=(
        ("Alice", "owner", "vision"),
        ("Bob", "owner", "lab"),
        ("Charlie", "owner", "serving"),
        ("Erin", "member", "lab"),
        ("Dana", "approver of all classes", ""),
        ("Olga", "operator and administrator", ""),
    ),
    storage=(("bob", "lab", 200),),
    notebooks=8,
    about="Three teams ask for 36 of 32 whole cards; 12 slices and 16 shares of cards are idle.",
    to_try=(
        "As Olga: the page Queue. Four notebooks of the team lab wait; each says for what, and what would help.",
        "As Bob: follow “Take a share” of one that waits: it starts on a part of a card, at once.",
        "As Charlie: change a job of the team serving to a slice. Its card is free, and a notebook borrows it.",
    ),
)


def scenario_named(name: str) -> Scenario:
    """Raises Problem for a name that is none."""
    if name == EVERYDAY.name:
        return EVERYDAY
    known = {one.name: one for one in (MORNING,)}
    if name not in known:
        way_on = f"Known: {', '.join(sorted(known))}. Without --scenario it is the everyday demo."
        raise UserError(f"There is no scenario {name}.", way_on)
    return known[name]
