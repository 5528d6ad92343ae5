"""What is known about a wait beside the cluster's own words: the class's nodes, and who holds its units. Pure.

Of other teams only sums are told, and small sums are not told as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.ui.text import plural, plural_form

# Fewer than this could tell whose it is.
FEW = 3


@dataclass(frozen=True)
class ClassContext:
    """Of one class, in units; None: nobody knows. `unhealthy`: that nodes have and do not offer; `cordoned`: on nodes
    that take nothing new of it; `idle`: of notebooks of all teams without activity; `outside`: that work which was not
    started here holds in the team's namespace.
    """

    name: str
    unit: str
    allocatable: int | None = None
    unhealthy: int | None = None
    cordoned: int | None = None
    idle: int = 0
    outside: int = 0


def context_sentences(known: ClassContext) -> tuple[str, ...]:
    """Sentences, what weighs most first."""
    units, found = plural_form(known.unit), []
    if known.allocatable == 0:
        found.append(f"No node offers any {units} of {known.name} at the moment.")
    if known.unhealthy:
        have = (known.allocatable or 0) + known.unhealthy
        are = "is" if known.unhealthy == 1 else "are"
        found.append(f"{known.unhealthy} of the {have} {units} of {known.name} {are} not healthy, and not offered.")
    if known.cordoned:
        are = "is" if known.cordoned == 1 else "are"
        where = "on nodes that are closed for new work, or kept for other work"
        found.append(f"{plural(known.cordoned, known.unit)} of {known.name} {are} {where}.")
    if known.outside:
        are = "is" if known.outside == 1 else "are"
        text = f"{plural(known.outside, known.unit)} of {known.name} {are} held by work of your team that was not "
        found.append(f"{text}started here: it is not in your lists, and only who started it can end it.")
    if known.idle:
        many = "A few" if known.idle < FEW else str(known.idle)
        text = f"{many} {units} of {known.name} are held by notebooks without activity, of all teams together."
        found.append(text)
    return tuple(found)
