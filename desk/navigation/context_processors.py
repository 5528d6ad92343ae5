"""What every page needs: navigation, teams, theme. One small query, some more for approvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists
from django.http import HttpRequest
from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import Role, User
from portal.docs.curl_examples import curl_for_page
from portal.web import theme
from tenants.approvers.queries import rights_of
from tenants.models import Deputy, Tenant
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.requests import queries as request_queries

# Which entry of the navigation a page belongs to, by the page's name in the URL map.
SECTIONS = {
    "tenant-home": "Home",
    "catalog": "Catalog",
    "catalog-changes": "Catalog",
    "catalog-choose": "Catalog",
    "catalog-compare": "Catalog",
    "class": "Catalog",
    "launch": "Workloads",
    "launch-link": "Workloads",
    "workload": "Workloads",
    "workload-change": "Workloads",
    "workloads": "Workloads",
    "volumes": "Workloads",
    "volume-delete": "Workloads",
    "volume-keep": "Workloads",
    "request": "Requests",
    "request-comment": "Requests",
    "request-decide": "Requests",
    "request-new": "Requests",
    "requests": "Requests",
    "grants": "Requests",
    "grant-reclaim": "Requests",
    "team": "Team",
    "invitation-revoke": "Team",
    "join-answer": "Team",
    "member-add": "Team",
    "namespace-set": "Team",
    "team-history": "Team",
    "secrets": "Team",
    "team-images": "Team",
    "prefix-allow": "Team",
    "registry-put": "Team",
    "inbox": "Inbox",
    "inbox-approve": "Inbox",
    "inbox-deny": "Inbox",
    "deputies": "Inbox",
    "team-request": "Inbox",
    "team-request-decide": "Inbox",
    "history": "History",
    "health": "Health",
    "queue": "Queue",
    "cluster": "Cluster",
    "nodes": "Nodes",
    "node": "Nodes",
    "people": "People",
    "person": "People",
    "person-class-grant": "People",
    "person-roles": "People",
}


@dataclass(frozen=True)
class NavItem:
    label: str
    href: str
    current: bool
    count: int | None = None


@dataclass(frozen=True)
class TeamLink:
    slug: str
    name: str
    href: str
    current: bool


def page_context(request: HttpRequest) -> dict[str, Any]:
    """The context processor. Empty navigation for anonymous people; error pages without a request get none at all."""
    found: dict[str, Any] = {"nav_items": [], "tenants": [], "current_tenant": None, "staff_links": []}
    found["theme"] = theme.chosen_theme(request)
    found["search_url"] = None
    found["api_docs_url"] = reverse("api-docs")
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return found
    teams, is_deputy = teams_of(user, current=tenant_in_address(request))
    team = next((team for team in teams if team.current), teams[0] if teams else None)
    found["tenants"] = teams
    found["current_tenant"] = team if team and (team.current or not user.roles) else None
    found["nav_items"] = navigation(request, user, team, is_deputy=is_deputy)
    found["call"] = curl_for_page(request)
    if found["current_tenant"]:
        found["search_url"] = reverse("workloads", args=[found["current_tenant"].slug])
    if user.is_staff:
        found["staff_links"] = [
            {"label": "Administration", "icon": "server", "href": reverse("admin:index")},
            {"label": "Styleguide", "icon": "contrast", "href": reverse("styleguide")},
        ]
    return found


def tenant_in_address(request: HttpRequest) -> str:
    """The slug of the team that the page is about, from the URL map's `tenant`."""
    match = request.resolver_match
    return str(match.kwargs.get("tenant", "")) if match else ""


def teams_of(user: User, *, current: str) -> tuple[list[TeamLink], bool]:
    """The person's own teams; staff see other teams' pages, but their switcher does not list the whole house. And
    whether the person is an approver's deputy now: one more query for who was ever named, or is in no team.
    """
    # On every page of everybody: what is in force is asked only where there is something.
    named = Exists(Deputy.objects.filter(deputy=user, ended_at=None))
    found = Tenant.objects.filter(memberships__user=user).annotate(is_named=named).order_by("slug")
    rows = list(found.values_list("slug", "name", "is_named"))
    may_be = rows[0][2] if rows else not user.has_role(Role.APPROVER)
    is_deputy = may_be and Deputy.objects.in_force().filter(deputy=user).exists()
    teams = [TeamLink(slug, name, reverse("tenant-home", args=[slug]), slug == current) for slug, name, _ in rows]
    return teams, is_deputy


def navigation(request: HttpRequest, user: User, team: TeamLink | None, *, is_deputy: bool) -> list[NavItem]:
    pages: list[tuple[str, str, int | None]] = []
    if team:
        pages.append(("Home", team.href, None))
    pages.append(("Catalog", reverse("catalog"), None))
    pages.append(("Cluster", reverse("cluster"), None))
    if team:
        pages.append(("Workloads", reverse("workloads", args=[team.slug]), None))
        pages.append(("Requests", reverse("requests", args=[team.slug]), None))
        pages.append(("Team", reverse("team", args=[team.slug]), None))
    if user.has_role(Role.APPROVER) or is_deputy:
        mine = rights_of(Actor(user=user, via="page"))
        pages.append(
            (
                "Inbox",
                reverse("inbox"),
                request_queries.requests_to_decide(mine).count()
                + team_request_queries.team_requests_to_decide(mine).count(),
            )
        )
    if user.roles:
        pages.append(("History", reverse("history"), None))
    if any(user.has_role(role) for role in (Role.OPERATOR, Role.ADMIN, Role.AUDITOR)):
        pages.append(("Queue", reverse("queue"), None))
    if user.has_role(Role.OPERATOR):
        pages.append(("Health", reverse("health"), None))
        pages.append(("Nodes", reverse("nodes"), None))
    if user.has_role(Role.ADMIN):
        pages.append(("People", reverse("people"), None))
    match = request.resolver_match
    here = SECTIONS.get(match.url_name or "") if match else None
    if here == "Requests" and not team:
        here = "Inbox"
    return [NavItem(label, href, label == here, count) for label, href, count in pages]
