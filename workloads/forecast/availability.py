"""The current outlook for a launch: it starts now, waits or never starts; and its cost. Pure: figures in, words out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from catalog.classes.capacity import weights
from catalog.classes.capacity.autoscaling import coming_sentence
from catalog.classes.capacity.device_memory import MemorySize
from portal.core.errors import Refusal
from portal.ui.text import decimal_text, plural, plural_form, price_text
from workloads.forecast.team_limits import QuotaRoom

GOOD, WAIT, BAD = "good", "wait", "bad"


@dataclass(frozen=True)
class AvailabilityFigures:
    """Figures of one class for one team, in units. `used`: by its own runs; `foreign`: reserved by Kueue for workloads
    of its namespace that were not started in the portal; `waiting`: of each of its queued runs, in their order;
    `ahead`: how many of these are ahead of a new run. `on_one_node`: the most free units on a single node now, None if
    the cluster was not read; `free_on`: free units of each node, if several may be needed. `rooms`: what the
    ResourceQuotas of its namespace allow. `added`: units that nodes which are added on demand may have, usually within
    `node_minutes`. `closed`, `held` and `leaving`: the sentence about a queue or namespace that
    accepts nothing, about a class whose scheduling is paused, or that is being retired; "" otherwise.
    `memory_sizes`: as in `ClassFacts`. `memory_gib`: of the devices that are free; None: any.
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
    foreign: int = 0
    closed: str = ""
    rooms: tuple[QuotaRoom, ...] = ()
    added: int = 0
    node_minutes: int = 0
    memory_sizes: tuple[MemorySize, ...] | None = None
    memory_gib: int | None = None

    @property
    def with_memory(self) -> str:
        return f" with at least {self.memory_gib} GiB" if self.memory_gib is not None else ""

    @property
    def in_use(self) -> int:
        """Units of the team's quota that something uses."""
        return self.used + self.foreign

    @property
    def is_open(self) -> bool:
        """Whether something new can start on the class at all, as far as that is known."""
        return not (self.closed or self.held or self.leaving) and self.on_one_node is not None

    def short_room(self, each: int, workers: int) -> QuotaRoom | None:
        """Returns the ResourceQuota that leaves too little for so many workers, if there is one."""
        return next((room for room in self.rooms if room.left < room.needed(each, workers)), None)

    @property
    def taken_first(self) -> int:
        """Units that queued runs take as soon as the queue processes them. A run that does not fit is skipped, so it
        does not block the others.
        """
        left = self.granted + self.borrowing_limit - self.in_use
        most = left if self.on_one_node is None else self.on_one_node
        taken = 0
        for units in self.waiting:
            if units <= min(left - taken, most):
                taken += units
        return taken

    @property
    def units_now(self) -> int:
        """Returns the most units of one run for which `availability_sentence` is "starts now"."""
        if not self.is_open or self.on_one_node is None:
            return 0
        taken = self.taken_first
        most = min(self.granted - self.in_use - taken, self.on_one_node - taken)
        return next((units for units in range(most, 0, -1) if self.short_room(units, 1) is None), 0)

    def workers_now(self, each: int) -> int:
        """Returns the most workers of so many units that would all start now: each on one node, not all on the same.
        Runs ahead are assumed to take the units in the least favorable way.
        """
        if not self.is_open or self.on_one_node is None:
            return 0
        taken = self.taken_first
        together = (self.on_one_node - taken) // each
        spread = sum(free // each for free in self.free_on) - taken
        within_quota = (self.granted - self.in_use - taken) // each
        most = max(0, min(within_quota, max(together, spread if together >= 1 else 0)))
        return next((count for count in range(most, 0, -1) if self.short_room(each, count) is None), 0)


@dataclass(frozen=True)
class Outlook:
    """`kinds`: for example "jobs only", "" for a class that accepts all kinds. `cost`: of the requested units and
    hours; `price`: of one unit and hour. Both are "" if the class is free of charge. `interruption`: what may preempt
    the run if it starts now, "" if it cannot start. `memory_sizes`: as in `ClassFacts`.
    """

    slug: str
    name: str
    sentence: str
    tone: str
    price: str
    kinds: str = ""
    cost: str = ""
    interruption: str = ""
    memory_sizes: tuple[MemorySize, ...] | None = ()


def availability_sentence(
    figures: AvailabilityFigures, never: Refusal | None, each: int = 1, workers: int = 1
) -> tuple[str, str]:
    """Returns (sentence, tone) for so many more units per worker; all workers start together."""
    units = each * workers
    if figures.leaving:
        return f"{figures.leaving} New workloads cannot start on it.", BAD
    if never is not None:
        return f"Not possible: {never.message}", BAD
    if (room := figures.short_room(each, workers)) is not None and room.most < room.needed(each, workers):
        return f"Not possible: {_too_small(room, figures.unit)}.", BAD
    if figures.closed:
        return f"{figures.closed} New workloads wait.", WAIT
    if figures.held:
        return f"{figures.held} New workloads wait until scheduling resumes.", WAIT
    taken = figures.in_use + figures.taken_first
    if figures.granted - taken >= units:
        uses = f"uses {taken + units} of {plural(figures.granted, figures.unit)}{_of_foreign(figures)}"
        if room is not None:
            return f"{uses}; {_full(room, figures.unit)}; waits until it has room", WAIT
        return _on_own(figures, units, uses=uses) if workers == 1 else _together(figures, each, workers, uses=uses)
    if figures.borrowing_limit:
        limit = figures.borrowing_limit
        more = f"{limit} more" if figures.granted else plural(limit, figures.unit)
        return (
            f"{_own_now(figures, units)}; up to {more} can be borrowed while other teams do not use them, and are "
            "reclaimed when those teams need them",
            WAIT,
        )
    if not figures.granted:
        return "your team has no quota in effect yet; starts when your grant starts", WAIT
    if units > figures.granted:
        granted = plural(figures.granted, figures.unit)
        return f"your team has a quota of {granted} now; {units} can start when a larger grant starts", WAIT
    return f"{_own_now(figures, units)}; waits{_behind(figures)} until a workload of your team ends", WAIT


def cost(units: int, hours: int | None, *, unit: str, weight: Fraction, price: Decimal) -> str:
    """Returns the cost of so many units: in GPU-hours, and the price if there is one. Without hours, per hour.
    `weight`: exact GPU equivalents of one unit; shown if a unit is not a GPU.
    """
    parts, per_hour = [], "" if hours else " per hour"
    if weight:
        amount = decimal_text(units * (hours or 1) * weight)
        each = "" if weight == 1 else f" (a {unit} counts as {weights.weight_text(weight)} GPU)"
        parts.append(f"{amount} {'GPU-hour' if amount == '1' else 'GPU-hours'}{per_hour}{each}")
    if price:
        parts.append(f"price {price_text(units * (hours or 1) * price)}{per_hour}")
    total = ", ".join(parts)
    return f"{plural(units, unit)} for {hours} h: {total}" if hours and parts else total


def _on_own(figures: AvailabilityFigures, units: int, *, uses: str) -> tuple[str, str]:
    free = figures.on_one_node
    if free is None:
        return f"{uses}; free {plural_form(figures.unit)} unknown, the cluster was not read", WAIT
    if free < units <= figures.added:
        return f"{uses}. {coming_sentence(figures.node_minutes)}", WAIT
    if free < units:
        most = f" (at most {free})" if free else ""
        asked = plural(units, figures.unit) if units > 1 else f"a {figures.unit}"
        return f"{uses}; no node has {asked}{figures.with_memory} free now{most}; {_until(figures, 'one has')}", WAIT
    # A queued run that fits takes its units first, wherever they are.
    if free - figures.taken_first < units:
        return f"{uses}; {free}{figures.with_memory} free now on one node; waits{_behind(figures)}", WAIT
    is_passed = figures.ahead and not figures.taken_first
    passed = f", before {figures.ahead} of your team that cannot start yet" if is_passed else ""
    return f"{uses}; {free}{figures.with_memory} free now on one node; starts now{passed}", GOOD


def _together(figures: AvailabilityFigures, each: int, workers: int, *, uses: str) -> tuple[str, str]:
    if figures.on_one_node is None:
        return f"{uses}; free {plural_form(figures.unit)} unknown, the cluster was not read", WAIT
    now = figures.workers_now(each)
    if now >= workers:
        free = figures.on_one_node - figures.taken_first
        have = f"{free}{figures.with_memory} free now on one node"
        where = have if free >= each * workers else f"enough{figures.with_memory} free now on several nodes"
        return f"{uses}; {where}; starts now", GOOD
    if each * workers <= figures.added:
        return f"{uses}. {coming_sentence(figures.node_minutes)}", WAIT
    if now == 0:
        asked = f"{plural(each, figures.unit)}{figures.with_memory}"
        return f"{uses}; no node has {asked} free now; {_until(figures, f'all {workers} workers fit')}", WAIT
    if figures.memory_gib is not None:
        return f"{uses}; {now} of {workers} workers fit now; the others wait and hold their units", WAIT
    return f"{uses}; {now} of {workers} workers fit now; starts when all of them fit", WAIT


def _until(figures: AvailabilityFigures, then: str) -> str:
    """The queue counts units of the class, not their memory."""
    held = "" if figures.memory_gib is None else ", and holds its units meanwhile"
    return f"waits until {then}{held}"


def _own_now(figures: AvailabilityFigures, units: int) -> str:
    own, unit = figures.granted - figures.in_use - figures.taken_first, plural_form(figures.unit)
    if not figures.granted:
        return "your team has no quota in effect"
    if own >= 1:
        is_left = "is" if own == 1 else "are"
        return f"{own} of your team's {figures.granted} {unit} {is_left} free and you request {units}"
    are = "is" if figures.granted == 1 else "are"
    return f"your team's {plural(figures.granted, figures.unit)} {are} in use{_of_foreign(figures)}"


def _of_foreign(figures: AvailabilityFigures) -> str:
    return f" ({figures.foreign} by workloads not started in the portal)" if figures.foreign else ""


def _too_small(room: QuotaRoom, unit: str) -> str:
    return f"the ResourceQuota {room.quota} of the namespace allows at most {_counted(room.most, room, unit)}"


def _full(room: QuotaRoom, unit: str) -> str:
    return f"the ResourceQuota {room.quota} of the namespace has room for {_counted(room.left, room, unit)} now"


def _counted(count: int, room: QuotaRoom, unit: str) -> str:
    noun = {"pods": "pod", "jobs": "Job"}.get(room.of, unit)
    return f"{plural(count, noun)} ({room.key})"


def _behind(figures: AvailabilityFigures) -> str:
    return f" behind {figures.ahead} of your team" if figures.ahead else ""
