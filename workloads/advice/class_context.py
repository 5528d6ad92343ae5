"""What is known about a wait besides the cluster's own messages: the class's nodes, and what uses its units. Pure.

Of other teams only sums are shown, and small sums are not shown as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.ui.text import plural, plural_form

# A smaller number could identify a team.
FEW = 3


@dataclass(frozen=True)
class ClassContext:
    """Units of one class; None: unknown. `unhealthy`: not allocatable; `cordoned`: on nodes that accept no new pods of
    the class; `idle`: of idle notebooks of all teams; `outside`: used in the team's namespace by pods that were not
    started in the portal.
    """

    name: str
    unit: str
    allocatable: int | None = None
    unhealthy: int | None = None
    cordoned: int | None = None
    idle: int = 0
    outside: int = 0


def context_sentences(known: ClassContext) -> tuple[str, ...]:
    """Returns sentences, the most important first."""
    units, found = plural_form(known.unit), []
    if known.allocatable == 0:
        found.append(f"No node has allocatable {units} of {known.name}.")
    if known.unhealthy:
        have = (known.allocatable or 0) + known.unhealthy
        are = "is" if known.unhealthy == 1 else "are"
        found.append(f"{known.unhealthy} of the {have} {units} of {known.name} {are} unhealthy and not allocatable.")
    if known.cordoned:
        are = "is" if known.cordoned == 1 else "are"
        where = "on nodes that are cordoned or reserved for other workloads"
        found.append(f"{plural(known.cordoned, known.unit)} of {known.name} {are} {where}.")
    if known.outside:
        are = "is" if known.outside == 1 else "are"
        text = f"{plural(known.outside, known.unit)} of {known.name} {are} in use by pods of your team that were not "
        remedy = "The portal does not stop them. Contact the person who created them, or an operator."
        found.append(f"{text}started in the portal. {remedy}")
    if known.idle:
        many = "A few" if known.idle < FEW else str(known.idle)
        text = f"{many} {units} of {known.name} are in use by idle notebooks, in all teams together."
        found.append(text)
    return tuple(found)
