"""Context of every page: navigation, teams, theme. One small query, some more for approvers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
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


class Section(StrEnum):
    """An entry of the navigation: code compares the value, users read the label."""

    HOME = "home"
    COCKPIT = "cockpit"
    CATALOG = "catalog"
    CLUSTER = "cluster"
    WORKLOADS = "workloads"
    REQUESTS = "requests"
    TEAM = "team"
    INBOX = "inbox"
    HISTORY = "history"
    TEAMS = "teams"
    QUEUE = "queue"
    HEALTH = "health"
    NODES = "nodes"
    PEOPLE = "people"


LABELS = {
    Section.HOME: "Home",
    Section.COCKPIT: "Overview",
    Section.CATALOG: "Catalog",
    Section.CLUSTER: "Cluster",
    Section.WORKLOADS: "Workloads",
    Section.REQUESTS: "Requests",
    Section.TEAM: "Team",
    Section.INBOX: "Inbox",
    Section.HISTORY: "History",
    Section.TEAMS: "Teams",
    Section.QUEUE: "Queue",
    Section.HEALTH: "Health",
    Section.NODES: "Nodes",
    Section.PEOPLE: "People",
}

# The entry of the navigation for each page, by the page's name in the URL map.
SECTIONS = {
    "tenant-home": Section.HOME,
    "catalog": Section.CATALOG,
    "catalog-changes": Section.CATALOG,
    "catalog-choose": Section.CATALOG,
    "catalog-editor": Section.CATALOG,
    "class-edit": Section.CATALOG,
    "class-new": Section.CATALOG,
    "class-state": Section.CATALOG,
    "catalog-compare": Section.CATALOG,
    "class": Section.CATALOG,
    "launch": Section.WORKLOADS,
    "launch-link": Section.WORKLOADS,
    "workload": Section.WORKLOADS,
    "workload-change": Section.WORKLOADS,
    "workloads": Section.WORKLOADS,
    "volumes": Section.WORKLOADS,
    "volume-delete": Section.WORKLOADS,
    "volume-keep": Section.WORKLOADS,
    "request": Section.REQUESTS,
    "request-comment": Section.REQUESTS,
    "request-decide": Section.REQUESTS,
    "request-new": Section.REQUESTS,
    "requests": Section.REQUESTS,
    "grants": Section.REQUESTS,
    "grant-reclaim": Section.REQUESTS,
    "team": Section.TEAM,
    "invitation-revoke": Section.TEAM,
    "join-answer": Section.TEAM,
    "member-add": Section.TEAM,
    "namespace-set": Section.TEAM,
    "team-history": Section.TEAM,
    "secrets": Section.TEAM,
    "team-images": Section.TEAM,
    "prefix-allow": Section.TEAM,
    "registry-put": Section.TEAM,
    "inbox": Section.INBOX,
    "inbox-approve": Section.INBOX,
    "inbox-deny": Section.INBOX,
    "delegations": Section.INBOX,
    "team-request": Section.INBOX,
    "team-request-decide": Section.INBOX,
    "history": Section.HISTORY,
    "health": Section.HEALTH,
    "all-teams": Section.TEAMS,
    "cockpit": Section.COCKPIT,
    "queue": Section.QUEUE,
    "cluster": Section.CLUSTER,
    "nodes": Section.NODES,
    "node": Section.NODES,
    "people": Section.PEOPLE,
    "person": Section.PEOPLE,
    "person-class-grant": Section.PEOPLE,
    "person-roles": Section.PEOPLE,
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
    """The context processor. Navigation is empty for anonymous users; error pages without a request get no context."""
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
        editor = {"label": "Edit catalog", "icon": "package", "href": reverse("catalog-editor")}
        found["staff_links"] = [
            *([editor] if user.has_role(Role.OPERATOR) or user.has_role(Role.ADMIN) else []),
            {"label": "Administration", "icon": "server", "href": reverse("admin:index")},
            {"label": "Styleguide", "icon": "contrast", "href": reverse("styleguide")},
        ]
    return found


def tenant_in_address(request: HttpRequest) -> str:
    """Returns the slug of the page's team, from the URL map's `tenant`."""
    match = request.resolver_match
    return str(match.kwargs.get("tenant", "")) if match else ""


def teams_of(user: User, *, current: str) -> tuple[list[TeamLink], bool]:
    """Returns the user's own teams; staff see other teams' pages, but their switcher does not list all teams. Also
    returns whether the user is an approver's delegate now: one more query for users who ever were, or who are in no
    team.
    """
    # Runs on every page: delegations in force are read only if there are any.
    named = Exists(Deputy.objects.filter(deputy=user, ended_at=None))
    found = Tenant.objects.filter(memberships__user=user).annotate(is_named=named).order_by("slug")
    rows = list(found.values_list("slug", "name", "is_named"))
    may_be = rows[0][2] if rows else not user.has_role(Role.APPROVER)
    is_deputy = may_be and Deputy.objects.in_force().filter(deputy=user).exists()
    teams = [TeamLink(slug, name, reverse("tenant-home", args=[slug]), slug == current) for slug, name, _ in rows]
    return teams, is_deputy


def navigation(request: HttpRequest, user: User, team: TeamLink | None, *, is_deputy: bool) -> list[NavItem]:
    pages: list[tuple[Section, str, int | None]] = []
    if team:
        pages.append((Section.HOME, team.href, None))
    if user.has_role(Role.OPERATOR) or user.has_role(Role.ADMIN):
        pages.append((Section.COCKPIT, reverse("cockpit"), None))
    pages.append((Section.CATALOG, reverse("catalog"), None))
    pages.append((Section.CLUSTER, reverse("cluster"), None))
    if team:
        pages.append((Section.WORKLOADS, reverse("workloads", args=[team.slug]), None))
        pages.append((Section.REQUESTS, reverse("requests", args=[team.slug]), None))
        pages.append((Section.TEAM, reverse("team", args=[team.slug]), None))
    if user.has_role(Role.APPROVER) or is_deputy:
        mine = rights_of(Actor(user=user, via="page"))
        pages.append(
            (
                Section.INBOX,
                reverse("inbox"),
                request_queries.requests_to_decide(mine).count()
                + team_request_queries.team_requests_to_decide(mine).count(),
            )
        )
    if user.roles:
        pages.append((Section.HISTORY, reverse("history"), None))
    if any(user.has_role(role) for role in (Role.OPERATOR, Role.ADMIN, Role.AUDITOR)):
        pages.append((Section.TEAMS, reverse("all-teams"), None))
        pages.append((Section.QUEUE, reverse("queue"), None))
    if user.has_role(Role.OPERATOR):
        pages.append((Section.HEALTH, reverse("health"), None))
        pages.append((Section.NODES, reverse("nodes"), None))
    if user.has_role(Role.ADMIN):
        pages.append((Section.PEOPLE, reverse("people"), None))
    match = request.resolver_match
    here = SECTIONS.get(match.url_name or "") if match else None
    if here is Section.REQUESTS and not team:
        here = Section.INBOX
    return [NavItem(LABELS[section], href, section is here, count) for section, href, count in pages]
