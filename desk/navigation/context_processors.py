"""Context of every page: navigation, teams, unread notices, banner, theme. One query, some more for approvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import Role, User
from catalog.banner.queries import banner_of_installation
from desk.navigation.pages import LABELS, Section, href_of, sections_of
from desk.navigation.queries import page_facts
from portal.docs.curl_examples import curl_for_page
from portal.web import theme
from tenants.approvers.queries import rights_of
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.requests import queries as request_queries

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
    "image-edit": Section.CATALOG,
    "image-new": Section.CATALOG,
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
    "team-usage": Section.TEAM,
    "team-sharing": Section.TEAM,
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
    "observe-only": Section.HEALTH,
    "all-teams": Section.TEAMS,
    "adoptions": Section.TEAMS,
    "adoption": Section.TEAM,
    "adoption-accept": Section.TEAM,
    "all-usage": Section.TEAMS,
    "idle-holders": Section.COCKPIT,
    "cockpit": Section.COCKPIT,
    "announcements": Section.COCKPIT,
    "queue": Section.QUEUE,
    "cluster": Section.CLUSTER,
    "nodes": Section.NODES,
    "node": Section.NODES,
    "node-mig": Section.NODES,
    "mig-sets": Section.NODES,
    "maintenances": Section.NODES,
    "maintenance": Section.NODES,
    "maintenance-new": Section.NODES,
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
    found["api_docs_url"] = reverse("api-docs")
    # Called only where a page shows it.
    found["banner"] = banner_of_installation
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return found
    facts, current = page_facts(user), tenant_in_address(request)
    found["banner"], found["unread_notices"] = facts.banner, facts.unread
    found["announcements"], found["announced"] = facts.announcements, facts.announced
    if facts.other_cluster_since is not None:
        found["other_cluster"] = {
            "since": facts.other_cluster_since,
            "is_operator": Actor(user=user, via="page").operates,
        }
    if facts.observed is not None:
        operates = Actor(user=user, via="page").operates
        by = facts.observed.by if operates else ""
        found["observed"] = {"since": facts.observed.since, "by": by, "is_operator": operates}
    teams = [TeamLink(slug, name, reverse("tenant-home", args=[slug]), slug == current) for slug, name in facts.teams]
    team = next((team for team in teams if team.current), teams[0] if teams else None)
    found["tenants"] = teams
    found["current_tenant"] = team if team and (team.current or not user.roles) else None
    found["nav_items"] = navigation(request, user, team, is_deputy=facts.is_deputy)
    found["call"] = curl_for_page(request)
    if user.is_staff:
        announcing = {"label": "Announcements", "icon": "info-circle", "href": reverse("announcements")}
        editor = {"label": "Edit catalog", "icon": "package", "href": reverse("catalog-editor")}
        found["staff_links"] = [
            *([editor, announcing] if user.has_role(Role.OPERATOR) or user.has_role(Role.ADMIN) else []),
            {"label": "Administration", "icon": "server", "href": reverse("admin:index")},
            {"label": "Styleguide", "icon": "contrast", "href": reverse("styleguide")},
        ]
    return found


def tenant_in_address(request: HttpRequest) -> str:
    """Returns the slug of the page's team, from the URL map's `tenant`."""
    match = request.resolver_match
    return str(match.kwargs.get("tenant", "")) if match else ""


def navigation(request: HttpRequest, user: User, team: TeamLink | None, *, is_deputy: bool) -> list[NavItem]:
    match = request.resolver_match
    here = SECTIONS.get(match.url_name or "") if match else None
    if here is Section.REQUESTS and not team:
        here = Section.INBOX
    return [
        NavItem(
            LABELS[section],
            href_of(section, team.slug if team else ""),
            section is here,
            _pending(user) if section is Section.INBOX else None,
        )
        for section in sections_of(user.roles, has_team=team is not None, is_deputy=is_deputy)
    ]


def _pending(user: User) -> int:
    mine = rights_of(Actor(user=user, via="page"))
    return request_queries.requests_to_decide(mine).count() + team_request_queries.team_requests_to_decide(mine).count()
