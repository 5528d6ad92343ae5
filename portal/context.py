"""What every page needs: navigation, teams, theme. Two small queries for people in teams, one more for approvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from accounts.models import Role, User
from portal import theme
from tenants.models import QuotaLine, QuotaRequest, Tenant


@dataclass(frozen=True)
class NavItem:
    label: str
    href: str
    current: bool
    count: int | None = None


@dataclass(frozen=True)
class Team:
    slug: str
    name: str
    href: str
    current: bool


def page(request: HttpRequest) -> dict[str, Any]:
    """The context processor. Empty navigation for anonymous people; error pages without a request get none at all."""
    found: dict[str, Any] = {"nav_items": [], "tenants": [], "current_tenant": None, "staff_links": []}
    found["theme"] = theme.chosen(request)
    found["search_url"] = found["api_docs_url"] = None
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return found
    teams = teams_of(user, current=tenant_in_address(request))
    team = next((team for team in teams if team.current), teams[0] if teams else None)
    found["tenants"] = teams
    found["current_tenant"] = team if team and (team.current or not user.roles) else None
    found["nav_items"] = navigation(request, user, team)
    found["search_url"] = address("search")
    found["api_docs_url"] = address("api-docs")
    if user.is_staff:
        links = [("Administration", "server", "admin:index"), ("Styleguide", "contrast", "styleguide")]
        found["staff_links"] = [
            {"label": label, "icon": icon, "href": href} for label, icon, name in links if (href := address(name))
        ]
    return found


def tenant_in_address(request: HttpRequest) -> str:
    """The slug of the team that the page is about, from the URL map's `tenant`."""
    match = request.resolver_match
    return str(match.kwargs.get("tenant", "")) if match else ""


def teams_of(user: User, *, current: str) -> list[Team]:
    """The person's own teams; staff see other teams' pages, but their switcher does not list the whole house."""
    rows = Tenant.objects.filter(memberships__user=user).order_by("slug").values_list("slug", "name")
    return [Team(slug, name, address("tenant-home", slug) or "/", slug == current) for slug, name in rows]


def navigation(request: HttpRequest, user: User, team: Team | None) -> list[NavItem]:
    pages: list[tuple[str, str | None, int | None]] = []
    if team:
        pages.append(("Home", team.href, None))
    pages.append(("Catalog", address("catalog"), None))
    if team:
        pages.append(("Workloads", address("workloads", team.slug), None))
        pages.append(("Requests", address("requests", team.slug), None))
        pages.append(("Team", address("team", team.slug), None))
    if user.has_role(Role.APPROVER):
        pages.append(("Inbox", address("inbox"), requests_waiting()))
    if user.has_role(Role.OPERATOR):
        pages.append(("Health", address("health"), None))
    best = longest_prefix(request.path, [href for _, href, _ in pages if href])
    return [NavItem(label, href, href == best, count) for label, href, count in pages if href]


def longest_prefix(path: str, hrefs: list[str]) -> str:
    """Which entry the page belongs to: the most specific address that it lies under."""
    under = [href for href in hrefs if path == href or path.startswith(href.rstrip("/") + "/")]
    return max(under, key=len, default="")


def requests_waiting() -> int:
    return QuotaRequest.objects.filter(lines__state=QuotaLine.State.PENDING).distinct().count()


def address(name: str, *args: object) -> str | None:
    """A page's address, or None where this installation does not serve it."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return None
