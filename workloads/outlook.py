"""What a launch would meet at this moment: at once, a wait, or never. Pure: figures in, one sentence and a tone out."""

from __future__ import annotations

from dataclasses import dataclass

from portal.errors import Refusal
from portal.quota_bar import plural

GOOD, WAIT, BAD = "good", "wait", "bad"


@dataclass(frozen=True)
class Figures:
    """Of one class, for one team, in units. `used` and `queued` are of its own runs; `on_one_node`: the most that is
    free on a single node now, None when the cluster was not read. `held` and `leaving`: what is said of a class that
    admits nothing new at present, or will never again; "" otherwise.
    """

    unit: str
    granted: int
    used: int
    queued: int
    borrowing_limit: int
    on_one_node: int | None
    held: str = ""
    leaving: str = ""


@dataclass(frozen=True)
class Outlook:
    """`kinds`: "jobs only" and the like, "" for a class that takes everything."""

    slug: str
    name: str
    sentence: str
    tone: str
    price: str
    kinds: str = ""


def sentence(figures: Figures, never: Refusal | None) -> tuple[str, str]:
    """(sentence, tone) for one unit more."""
    if figures.leaving:
        return f"{figures.leaving} Nothing new starts on it.", BAD
    if never is not None:
        return never.message, BAD
    if figures.held:
        return f"{figures.held} What you launch waits until it opens.", WAIT
    own = figures.granted - figures.used - figures.queued
    if own >= 1:
        uses = f"uses {figures.used + figures.queued + 1} of {figures.granted}"
        if figures.on_one_node is None:
            return f"{uses}; what is free is not known, the cluster was not read", WAIT
        if figures.on_one_node >= 1:
            return f"{uses}; {figures.on_one_node} free now on one node; starts at once", GOOD
        return f"{uses}; no node has a {figures.unit} free now; waits until one has", WAIT
    if figures.borrowing_limit:
        more = f"{figures.borrowing_limit} more" if figures.granted else str(figures.borrowing_limit)
        own_now = f"your {figures.granted} granted are in use" if figures.granted else "nothing of your own is in force"
        return (
            f"{own_now}; up to {more} may be borrowed while "
            "others leave them idle, and are taken back when they need them",
            WAIT,
        )
    if not figures.granted:
        return "nothing is in force yet; starts when your grant begins", WAIT
    behind = f" behind {plural(figures.queued, figures.unit)} of yours" if figures.queued else ""
    return f"your {figures.granted} granted are in use; waits{behind} until something of yours ends", WAIT
