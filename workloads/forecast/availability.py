"""What a launch would meet at this moment: at once, a wait, or never; and its cost. Pure: figures in, words out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from catalog.classes.capacity import weights
from portal.core.errors import Refusal
from portal.ui.text import decimal_text, plural, plural_form, price_text

GOOD, WAIT, BAD = "good", "wait", "bad"


@dataclass(frozen=True)
class AvailabilityFigures:
    """Of one class, for one team, in units. `used`: of its own runs; `waiting`: of each of its own that waits, in their
    order; `ahead`: how many of these go before a new one. `on_one_node`: the most that is free on a single node now,
    None when the cluster was not read; `free_on`: of each node, where several may be needed. `held` and `leaving`: what
    is said of a class that admits nothing new at present, or will never again; "" otherwise.
    """

    unit: str
    granted: int
    used: int
    borrowing_limit: int
    on_one_node: int | None
    held: str = ""
    leaving: str = ""
    waiting: tuple[int, ...] = ()
    ahead: int = 0
    free_on: tuple[int, ...] = ()

    @property
    def taken_first(self) -> int:
        """Units that what waits takes as soon as the queue looks at it: what does not fit is passed over, so it holds
        nothing back.
        """
        left = self.granted + self.borrowing_limit - self.used
        most = left if self.on_one_node is None else self.on_one_node
        taken = 0
        for units in self.waiting:
            if units <= min(left - taken, most):
                taken += units
        return taken

    def workers_now(self, each: int) -> int:
        """The most workers of so many units that would all start at once: each on one node, not all on the same. What
        goes first takes its units wherever it hurts most.
        """
        if self.held or self.leaving or self.on_one_node is None:
            return 0
        taken = self.taken_first
        together = (self.on_one_node - taken) // each
        spread = sum(free // each for free in self.free_on) - taken
        within_quota = (self.granted - self.used - taken) // each
        return max(0, min(within_quota, max(together, spread if together >= 1 else 0)))


@dataclass(frozen=True)
class Outlook:
    """`kinds`: "jobs only" and the like, "" for a class that takes everything. `cost`: of the units and hours that were
    asked about; `price`: of one unit and hour. Both "" for what costs nothing. `interruption`: who may interrupt it if
    it starts now, "" for what never does.
    """

    slug: str
    name: str
    sentence: str
    tone: str
    price: str
    kinds: str = ""
    cost: str = ""
    interruption: str = ""


def availability_sentence(
    figures: AvailabilityFigures, never: Refusal | None, each: int = 1, workers: int = 1
) -> tuple[str, str]:
    """(sentence, tone) for so many units more for each worker, which all start together."""
    units = each * workers
    if figures.leaving:
        return f"{figures.leaving} Nothing new starts on it.", BAD
    if never is not None:
        return f"can never start here, because: {never.message}", BAD
    if figures.held:
        return f"{figures.held} What you launch waits until it opens.", WAIT
    taken = figures.used + figures.taken_first
    if figures.granted - taken >= units:
        uses = f"uses {taken + units} of {plural(figures.granted, figures.unit)}"
        return _on_own(figures, units, uses=uses) if workers == 1 else _together(figures, each, workers, uses=uses)
    if figures.borrowing_limit:
        limit = figures.borrowing_limit
        more = f"{limit} more" if figures.granted else plural(limit, figures.unit)
        return (
            f"{_own_now(figures, units)}; up to {more} may be borrowed while "
            "others leave them idle, and are taken back when they need them",
            WAIT,
        )
    if not figures.granted:
        return "nothing is in force yet; starts when your grant begins", WAIT
    if units > figures.granted:
        return f"{_in_force(figures)} now; {units} start when a larger grant begins", WAIT
    return f"{_own_now(figures, units)}; waits{_behind(figures)} until something of yours ends", WAIT


def cost(units: int, hours: int | None, *, unit: str, weight: Fraction, price: Decimal) -> str:
    """What so many units cost: in GPU-hours, and the price where there is one. Without hours, of each hour. `weight`:
    GPU equivalents of one unit, exact; said where a unit is not a GPU.
    """
    parts = []
    if weight:
        amount = decimal_text(units * (hours or 1) * weight)
        each = "" if weight == 1 else f" (a {unit} counts as {weights.weight_text(weight)} GPU)"
        parts.append(f"{amount} {'GPU-hour' if amount == '1' else 'GPU-hours'}{each}")
    if price:
        parts.append(f"price {price_text(units * (hours or 1) * price)}")
    time = f"in {hours} h" if hours else "in each hour"
    return f"{plural(units, unit)} {time}: {', '.join(parts)}" if parts else ""


def _on_own(figures: AvailabilityFigures, units: int, *, uses: str) -> tuple[str, str]:
    free = figures.on_one_node
    if free is None:
        return f"{uses}; what is free is not known, the cluster was not read", WAIT
    if free < units:
        most = f" ({free} at most)" if free else ""
        asked = plural(units, figures.unit) if units > 1 else f"a {figures.unit}"
        return f"{uses}; no node has {asked} free now{most}; waits until one has", WAIT
    # What waits and fits takes its units first, wherever they are.
    if free - figures.taken_first < units:
        return f"{uses}; {free} free now on one node; waits{_behind(figures)}", WAIT
    passed = f", before {figures.ahead} of yours that cannot yet" if figures.ahead and not figures.taken_first else ""
    return f"{uses}; {free} free now on one node; starts at once{passed}", GOOD


def _together(figures: AvailabilityFigures, each: int, workers: int, *, uses: str) -> tuple[str, str]:
    if figures.on_one_node is None:
        return f"{uses}; what is free is not known, the cluster was not read", WAIT
    now = figures.workers_now(each)
    if now >= workers:
        free = figures.on_one_node - figures.taken_first
        where = f"{free} free now on one node" if free >= each * workers else "so many are free now on several nodes"
        return f"{uses}; {where}; starts at once", GOOD
    if now == 0:
        return f"{uses}; no node has {plural(each, figures.unit)} free now; waits until all {workers} workers fit", WAIT
    return f"{uses}; {now} of {workers} workers would fit now; starts when all do at the same time", WAIT


def _own_now(figures: AvailabilityFigures, units: int) -> str:
    own, unit = figures.granted - figures.used - figures.taken_first, plural_form(figures.unit)
    if not figures.granted:
        return "nothing of your own is in force"
    if own >= 1:
        is_left = "is" if own == 1 else "are"
        return f"{own} of your {figures.granted} granted {unit} {is_left} left and you ask for {units}"
    if figures.granted == 1:
        return f"your 1 granted {figures.unit} is in use"
    return f"your {figures.granted} granted {unit} are in use"


def _in_force(figures: AvailabilityFigures) -> str:
    return f"{plural(figures.granted, figures.unit)} {'is' if figures.granted == 1 else 'are'} in force"


def _behind(figures: AvailabilityFigures) -> str:
    return f" behind {figures.ahead} of yours" if figures.ahead else ""
