"""Events: those of a team for its members, all of them for staff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events import queries as event_queries
from accounts.events.texts import verb_text
from accounts.models import Event
from cluster.apply.queries import DriftRecord, drift_records
from portal.core.due import owner_label
from tenants.models import Tenant
from workloads.models import Workload

# Subject in the filter → nouns in the verbs.
SUBJECTS = {
    "workloads": ("Workloads", ("workload", "notebook")),
    "quota": ("Quota", ("request", "grant")),
    "people": ("People", ("member", "invitation", "join", "account", "approver", "token")),
    "team": ("Team and namespace", ("tenant", "namespace", "access", "terms")),
    "catalog": ("Catalog", ("class", "image", "proposal", "cluster")),
}
TEXT_LENGTH = 120
DRIFT_SHOWN = 20
# Actions of users on their own account only.
_OWN = "signed_in signed_out glass_broken password_changed session_ended sessions_ended notices_set"
_OWN_FACTOR = "second_factor_added second_factor_removed recovery_codes_made"
OF_ONESELF = {f"account.{verb}" for verb in f"{_OWN} {_OWN_FACTOR}".split()}


@dataclass(frozen=True)
class FieldChange:
    """`before` is "" if there is no previous value."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class HistoryEntry:
    """`via` "" for pages and the portal itself, `href` "" if the row has no page, `team` "" without a team."""

    at: datetime
    who: str
    via: str
    sentence: str
    name: str
    href: str
    team: str
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True)
class HistoryFilter:
    """The filters in the URL; invalid values are ignored."""

    subject: str = ""
    who: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def is_on(self) -> bool:
        return bool(self.subject or self.who or self.since or self.until)


def events(by: Actor, chosen: HistoryFilter, *, tenant: str = "") -> QuerySet[Event]:
    """Newest first. Events of one team that `by` may see, or of everything that `by` may see."""
    if tenant:
        found = event_queries.events_of_tenant(tenant)
    else:
        teams = Tenant.objects.visible_to(by).values_list("slug", flat=True)
        found = event_queries.events_for(by, tenants=list(teams) if not by.sees_all else ())
    if chosen.subject in SUBJECTS:
        nouns = SUBJECTS[chosen.subject][1]
        wanted = Q()
        for noun in nouns:
            wanted |= Q(verb__startswith=f"{noun}.")
        found = found.filter(wanted)
    if chosen.who:
        found = found.filter(actor__icontains=chosen.who[:80])
    if chosen.since:
        found = found.filter(at__gte=_midnight(chosen.since))
    if chosen.until:
        found = found.filter(at__lt=_midnight(chosen.until + timedelta(days=1)))
    return found


def team_drift(team: Tenant) -> list[DriftRecord]:
    """What other writers changed in the team's objects in the last 30 days. Two queries."""
    owners = [owner_label(row) for row in team.namespaces.all()]
    return drift_records(limit=DRIFT_SHOWN, owners=owners)


def history_entries(found: Iterable[Event]) -> list[HistoryEntry]:
    """One query, for the workloads that still have a page."""
    shown = list(found)
    pks = [int(event.row.rpartition(".")[2]) for event in shown if event.row.startswith("workloads.workload.")]
    alive = set(Workload.objects.filter(pk__in=pks, deleted_at=None).values_list("pk", flat=True))
    return [
        HistoryEntry(
            at=event.at,
            who=event.actor,
            via="" if event.via in ("page", event.actor) else event.via,
            sentence=verb_text(event.verb, event.after),
            name="" if event.verb in OF_ONESELF else event.name,
            href=_href(event, alive),
            team=event.tenant,
            changes=tuple(_changes(event.before, event.after)),
        )
        for event in shown
    ]


def _href(event: Event, alive: set[int]) -> str:
    model, _, pk = event.row.rpartition(".")
    if model == "workloads.workload" and int(pk) in alive:
        return reverse("workload", args=[event.tenant, event.name])
    if model == "tenants.quotarequest":
        return reverse("request", args=[pk])
    if model == "tenants.tenant":
        return reverse("team", args=[event.tenant])
    return ""


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[FieldChange]:
    """Changes whose values are readable as text; a list of lines has its own page."""
    for name in dict.fromkeys([*before, *after]):
        old, new = _text(before.get(name)), _text(after.get(name))
        if old != new:
            yield FieldChange(name.replace("_", " "), old, new or "none")


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int | float):
        return ""
    text = str(value)
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, datetime.min.time()))
