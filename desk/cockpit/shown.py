"""The operators' start page as text and links. Pure, except that it resolves addresses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from django.urls import reverse

from desk.cockpit.queries import Cockpit, SharingMode
from desk.health.catalog_checks import CatalogChecks
from desk.health.queries import SHOWN
from portal.ui.text import decimal_text

# Parts of the page Health with nothing to do if they are empty.
ONLY_IF_ANY = ("#silent", "#stuck", "#certificates", "#gpu-faults")


@dataclass(frozen=True)
class Figure:
    """A number and the place that lists what it counts. `is_bad`: an operator has to do something."""

    label: str
    text: str
    href: str
    is_bad: bool


def shown_mode(one: SharingMode) -> dict[str, Any]:
    total, number = one.total, len(one.classes)
    used, most = total.used, total.allocatable
    return {
        "label": one.label,
        "classes": f"{number} class{'' if number == 1 else 'es'}",
        "names": ", ".join(one.classes),
        "used_percent": min(100, round(100 * used / most)) if most and used is not None else None,
        **{name: _text(getattr(total, name)) for name in ("allocatable", "free", "used", "promised", "queued")},
    }


def troubles(found: Cockpit) -> list[Figure]:
    """In the order of Health, then teams."""
    health, checks = found.snapshot.health, found.snapshot.checks
    page = reverse("health")
    overdue = sum(one.rows for one in health.overdue)
    contradictions = health.contradictions
    expiring = sum(one.is_to_renew for one in health.certificates)
    figures = [
        Figure("Components that do not respond", str(len(health.silent)), f"{page}#silent", bool(health.silent)),
        Figure("Certificates to renew", str(expiring), f"{page}#certificates", bool(expiring)),
        Figure("GPU faults", bounded(len(health.gpu_faults)), f"{page}#gpu-faults", bool(health.gpu_faults)),
        Figure("Catalog problems", _known(checks, checks.faults), f"{page}#catalog-checks", bool(checks.faults)),
        Figure("Catalog hints", _known(checks, checks.hints), f"{page}#catalog-checks", False),
        Figure("Tasks past due", str(overdue), f"{page}#overdue", health.is_late),
        Figure("Failing tasks", bounded(len(health.problems)), f"{page}#failing", bool(health.problems)),
        Figure("Undelivered mails", str(found.undelivered), f"{page}#failing", bool(found.undelivered)),
        Figure(
            "Inconsistent runs",
            "–" if contradictions is None else bounded(len(contradictions)),
            f"{page}#contradictions",
            bool(contradictions),
        ),
        Figure("Orphaned objects", bounded(len(health.orphans)), f"{page}#orphans", bool(health.orphans)),
        Figure("Terminating namespaces", str(len(health.stuck)), f"{page}#stuck", bool(health.stuck)),
        Figure("Stuck teams", str(found.teams["stuck"]), _teams("stuck"), bool(found.teams["stuck"])),
    ]
    return [one for one in figures if one.text != "0" or not one.href.endswith(ONLY_IF_ANY)]


def _known(checks: CatalogChecks, number: int) -> str:
    return "–" if checks.lines is None else str(number)


def bounded(number: int) -> str:
    """Health lists no more."""
    return f"{number}+" if number == SHOWN else str(number)


def _teams(state: str) -> str:
    return f"{reverse('all-teams')}?state={state}"


def _text(value: Fraction | None) -> str:
    return "–" if value is None else decimal_text(value)
