"""The pages that a person may open without further choices: entries of the navigation and of the menus."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import Role
from desk.navigation.queries import page_facts


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
    TEAMS = "all-teams"
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
OF_TEAM = (Section.HOME, Section.WORKLOADS, Section.REQUESTS, Section.TEAM)
# Pages below an entry: the name in the URL map, the label, further words by which people look for it.
MORE = (
    ("catalog-choose", "Choose a class", "recommendation wizard"),
    ("catalog-compare", "Compare classes", ""),
    ("catalog-changes", "Changes of the catalog", "history"),
    ("account", "Account and sessions", "password second factor sign out"),
    ("notices", "Notices", "email preferences unread"),
    ("tokens", "API tokens", "key scope"),
)
MORE_OF_TEAM = (
    ("launch", "Launch", "new notebook job"),
    ("grants", "Grants", "quota expires"),
    ("volumes", "Volumes", "storage"),
    ("secrets", "Secrets", "environment"),
    ("team-images", "Images", "registry credentials"),
    ("team-history", "History", "events"),
    ("team-usage", "Usage", "report month cost gpu-hours"),
)
WORDS = {
    Section.COCKPIT: "operators trouble drift",
    Section.CATALOG: "classes gpu",
    Section.CLUSTER: "capacity free",
    Section.WORKLOADS: "notebooks jobs",
    Section.TEAM: "members invitations join",
    Section.TEAMS: "quota use idle",
    Section.INBOX: "approve decide delegates",
    Section.PEOPLE: "accounts users",
}


@dataclass(frozen=True)
class FoundPage:
    label: str
    team: str  # name of the team that it is about; ""
    href: str
    words: str = ""


def sections_of(roles: Collection[str], *, has_team: bool, is_deputy: bool) -> list[Section]:
    """Entries of the navigation, in its order."""
    found = [Section.HOME] if has_team else []
    if not {Role.OPERATOR, Role.ADMIN}.isdisjoint(roles):
        found.append(Section.COCKPIT)
    found += [Section.CATALOG, Section.CLUSTER]
    if has_team:
        found += [Section.WORKLOADS, Section.REQUESTS, Section.TEAM]
    if Role.APPROVER in roles or is_deputy:
        found.append(Section.INBOX)
    if roles:
        found.append(Section.HISTORY)
    if not {Role.OPERATOR, Role.ADMIN, Role.AUDITOR}.isdisjoint(roles):
        found += [Section.TEAMS, Section.QUEUE]
    if Role.OPERATOR in roles:
        found += [Section.HEALTH, Section.NODES]
    if Role.ADMIN in roles:
        found.append(Section.PEOPLE)
    return found


def href_of(section: Section, team: str) -> str:
    if section is Section.HOME:
        return reverse("tenant-home", args=[team])
    return reverse(section, args=[team] if section in OF_TEAM else [])


def pages_of(by: Actor) -> list[FoundPage]:
    """Those of the navigation and the menus; those of a team for each of the own teams. One query, two for some."""
    facts = page_facts(by.person)
    teams = [team for team in facts.teams if by.confined_to in ("", team[0])]
    is_deputy = facts.is_deputy and not by.confined_to
    found = [
        FoundPage(LABELS[one], "", href_of(one, ""), WORDS.get(one, ""))
        for one in sections_of(by.roles, has_team=False, is_deputy=is_deputy)
    ]
    found += [FoundPage(label, "", reverse(name), words) for name, label, words in MORE]
    for slug, name in teams:
        found += [FoundPage(LABELS[one], name, href_of(one, slug), WORDS.get(one, "")) for one in OF_TEAM]
        found += [FoundPage(label, name, reverse(page, args=[slug]), words) for page, label, words in MORE_OF_TEAM]
    return found
