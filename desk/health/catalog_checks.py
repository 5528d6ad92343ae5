"""Standing checks of the catalog as the page Health shows them: each finding with remedy and link."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.urls import NoReverseMatch, reverse

from catalog.checks.queries import CheckReport, check_report
from catalog.checks.types import Finding, Severity, Subject
from cluster.models import Cluster
from portal.ui.text import plural

# Limit per check: a check with a hundred findings must not hide the others.
SHOWN = 30


@dataclass(frozen=True)
class FindingLine:
    """`since`: at least since then. `href`: of what it is about, `remedy_href`: where the remedy is done, if elsewhere.
    "": there is no page, or this user may not open it.
    """

    code: str
    severity: str
    about: str
    href: str
    sentence: str
    remedy: str
    remedy_href: str
    since: datetime | None


@dataclass(frozen=True)
class CatalogChecks:
    """`lines` None: unknown; `more`: number of findings that are not in them. `faults`: errors and warnings, which the
    verdict of the whole page includes, without the `hints`. `digest` is equal while the shown content is equal,
    whatever the time.
    """

    verdict: str
    faults: int
    hints: int
    lines: tuple[FindingLine, ...] | None
    more: int
    as_of: datetime | None
    is_stale: bool
    problem: str

    @property
    def digest(self) -> str:
        shown = repr((self.verdict, self.lines, self.more, self.is_stale, self.problem))
        return hashlib.blake2b(shown.encode(), digest_size=8).hexdigest()


def catalog_checks(cluster: Cluster, *, is_staff: bool) -> CatalogChecks:
    """`is_staff`: the user may open the catalog's editor and the pages of nodes. Seven queries."""
    found = check_report(cluster)
    shown = _shown(found.findings or ())
    hints = sum(one.severity is Severity.HINT for one in found.findings or ())
    return CatalogChecks(
        verdict=_verdict(found),
        faults=len(found.findings or ()) - hints,
        hints=hints,
        lines=None if found.findings is None else tuple(_line(one, is_staff=is_staff) for one in shown),
        more=len(found.findings or ()) - len(shown),
        as_of=found.as_of,
        is_stale=not found.is_current,
        problem=found.problem,
    )


def _shown(findings: tuple[Finding, ...]) -> list[Finding]:
    numbers: Counter[str] = Counter()
    shown = []
    for one in findings:
        numbers[one.code] += 1
        if numbers[one.code] <= SHOWN:
            shown.append(one)
    return shown


def _verdict(found: CheckReport) -> str:
    if found.findings is None:
        return "Unknown"
    numbers = Counter(one.severity for one in found.findings)
    told = ", ".join(plural(numbers[severity], severity.value) for severity in Severity if numbers[severity])
    return told or "no problems"


def _line(one: Finding, *, is_staff: bool) -> FindingLine:
    about = "the catalog" if one.subject.sort == "catalog" else f"{one.subject.sort} {one.subject.name}"
    href = _href(one.subject) if is_staff else ""
    there = _href(one.remedy_on) if is_staff and one.remedy_on else ""
    return FindingLine(one.code, one.severity.value, about, href, one.sentence, one.remedy, there, one.since)


def _href(subject: Subject) -> str:
    try:
        if subject.sort == "class":
            return reverse("class-edit", args=[subject.slug])
        if subject.sort == "node":
            return reverse("node", args=[subject.name])
        if subject.sort == "proposal":
            return reverse("admin:catalog_gpuclass_proposed")
    except NoReverseMatch:
        return ""
    return ""
