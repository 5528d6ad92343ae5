"""Finds what contains all words of a text, among what the person may see anyway: each group reads the same rows as the
list of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import Role, User
from accounts.people.queries import search_people
from cluster.models import Cluster
from desk.navigation.pages import pages_of
from desk.search.types import RESULTS_MAX, TEXT_MAX, Group, Result
from portal.docs.help import HELP
from portal.docs.sections import calls
from tenants.class_access.queries import visible_classes
from tenants.core.queries import teams_matching
from tenants.models import Membership, Tenant
from workloads.models import Workload


def search(by: Actor, text: str) -> list[Group]:
    """Groups with results only. Five queries, whatever exists and whatever is found; none without a text."""
    text = " ".join(text.replace("\0", "")[:TEXT_MAX].split())
    if not text:
        return []
    found = (
        ("team", "Teams", _teams(by, text)),
        ("class", "Classes", _classes(by, text)),
        ("workload", "Workloads", _workloads(by, text)),
        ("person", "People", _people(by, text)),
        ("page", "Pages", _pages(by, text)),
        ("help", "Documentation", _documentation(text)),
    )
    groups = (_group(kind, label, list(results)) for kind, label, results in found)
    return [group for group in groups if group.results]


def _group(kind: str, label: str, results: list[Result]) -> Group:
    return Group(kind, label, results[:RESULTS_MAX], has_more=len(results) > RESULTS_MAX)


def _teams(by: Actor, text: str) -> Iterator[Result]:
    for team in teams_matching(Tenant.objects.visible_to(by), text).order_by("slug")[: RESULTS_MAX + 1]:
        yield Result(team.name, team.slug, reverse("tenant-home", args=[team.slug]))


def _classes(by: Actor, text: str) -> Iterator[Result]:
    for cluster in Cluster.objects.filter(name=settings.CLUSTER_NAME):
        found = visible_classes(by, cluster)
        for word in text.split():
            found = found.filter(Q(slug__icontains=word) | Q(name__icontains=word))
        for one in found.order_by("slug")[: RESULTS_MAX + 1]:
            yield Result(one.name, one.summary or one.slug, reverse("class", args=[one.slug]))


def _workloads(by: Actor, text: str) -> Iterator[Result]:
    """Members find every part of a name. Staff, who see all teams, find its beginning, for which there is an index."""
    seen = Workload.objects.visible_to(by).select_related("tenant")
    named = seen.filter(name__startswith=text.lower()) if by.sees_all else _with_words(seen, text)
    for one in named.order_by("name", "pk")[: RESULTS_MAX + 1]:
        href = reverse("workload", args=[one.tenant.slug, one.name])
        yield Result(one.name, f"{one.get_kind_display()} of {one.tenant.name}", href)


def _with_words(found: QuerySet[Workload], text: str) -> QuerySet[Workload]:
    for word in text.split():
        found = found.filter(name__icontains=word)
    return found


def _people(by: Actor, text: str) -> Iterator[Result]:
    """For staff everybody; for others the members of their own teams, whom the page Team shows to them."""
    teams = Tenant.objects.visible_to(by)
    theirs = Membership.objects.filter(user=OuterRef("pk"), tenant__in=teams).order_by("tenant__slug")
    found = search_people(text).annotate(team=Subquery(theirs.values("tenant__slug")[:1]))
    if not by.sees_all:
        found = found.filter(pk__in=Membership.objects.filter(tenant__in=teams).values("user"))
    for one in found.order_by("name", "pk")[: RESULTS_MAX + 1]:
        yield Result(one.name, one.email, _page_of_person(by, one, one.team))


def _page_of_person(by: Actor, person: User, team: str | None) -> str:
    if by.has_role(Role.ADMIN):
        return reverse("person", args=[person.pk])
    return reverse("team", args=[team]) if team else ""


def _pages(by: Actor, text: str) -> Iterator[Result]:
    for page in pages_of(by):
        if _has_words(text, [page.label, page.team, page.words]):
            yield Result(page.label, page.team, page.href)


def _documentation(text: str) -> Iterator[Result]:
    for section in HELP:
        if _has_words(text, [section.title, section.words]):
            yield Result(section.title, "Help", f"{reverse('help')}#{section.id}")
    for call in calls():
        if _has_words(text, [call.summary, call.path, call.id, "api"]):
            href = f"{reverse('api-section', args=[call.section])}#{call.id}"
            yield Result(f"{call.method} {call.path}", call.summary, href)


def _has_words(text: str, places: Iterable[str]) -> bool:
    whole = " ".join(places).casefold()
    return all(word in whole for word in text.casefold().split())
