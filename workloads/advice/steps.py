"""One suggested action, and the links and words that several of them share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse

from portal.ui.text import plural
from workloads.advice.facts import AdviceFacts
from workloads.forecast.availability import GOOD, AvailabilityFigures, availability_sentence


@dataclass(frozen=True)
class PageLink:
    """A page of the team with values filled in."""

    page: str
    name: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    place: str = ""

    def href(self, tenant: str) -> str:
        address = reverse(self.page, args=[tenant, self.name] if self.name else [tenant])
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{address}{query}{f'#{self.place}' if self.place else ''}"


@dataclass(frozen=True)
class NextStep:
    """`verb` is a stable code; `way` None: there is no page to open."""

    verb: str
    label: str
    why: str
    way: PageLink | None = None


def changed(facts: AdviceFacts, slug: str, units: int, place: str, workers: int = 0) -> PageLink:
    """The form that changes the workload, with this class and size."""
    query = {"class": slug, "units": str(units), **({"workers": str(workers)} if workers else {})}
    return PageLink("workload-change", facts.name, query, place)


def free_now(figures: AvailabilityFigures, each: int, workers: int = 1) -> str:
    """A clause about units that fit now."""
    text, tone = availability_sentence(figures, None, each, workers)
    units = each * workers
    return text if tone == GOOD else f"{plural(units, figures.unit)} {'is' if units == 1 else 'are'} free"
