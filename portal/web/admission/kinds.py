"""What a request is for, by the name of its route: what goes through when a process of web is full, and what does not.

A route that is named nowhere is usual, or a change if the method is not for reading. A new list, report or chart
belongs to COSTLY, the end of something that costs money or a decision to FIRST. What htmx fetches for a part of a page,
such as a refreshed fragment or the preview of a form, is usual at most: people do not wait for it.
"""

from __future__ import annotations

import functools
from enum import StrEnum

from django.urls import Resolver404, resolve


class Kind(StrEnum):
    FIRST = "first"
    SIGN_IN = "sign_in"
    CHANGE = "change"
    USUAL = "usual"
    COSTLY = "costly"


SIGN_IN = frozenset({"login", "logout", "mfa_authenticate", "oidc-back", "oidc-begin", "password-code", "session"})
# Home, the page with the button "Stop" and what it does, decisions about requests, the end of a token. Of the API only
# what does something: programs poll, and can wait.
FIRST = frozenset(
    {
        *("home", "tenant-home", "workload", "workload-actions", "workload-stop", "api-workload-stop"),
        *("idle-stop", "api-idle-stop", "token-revoke", "api-token", "team-token-revoke", "api-team-token"),
        *("request", "request-decide", "api-request-decide", "inbox-approve", "inbox-deny"),
        *("team-request-decide", "api-team-request-decide"),
        *("maintenance-cancel", "maintenance-release", "api-maintenance-cancel", "api-maintenance-release"),
    }
)
# Lists of everything, exports, charts and searches: each may read thousands of rows.
COSTLY = frozenset(
    {
        *("history", "team-history", "catalog-changes", "api-events", "search", "api-search"),
        *("workloads", "api-workloads", "api-workload-runs", "queue", "queue-class", "queue-team", "api-queue"),
        *("requests", "api-requests", "inbox", "api-inbox", "people", "api-people", "all-tokens", "nodes", "api-nodes"),
        *("all-teams", "all-teams-csv", "api-operators-teams", "api-teams"),
        *("all-usage", "all-usage-csv", "capacity-report-csv", "team-usage", "team-usage-csv"),
        *("api-all-report", "api-all-report-csv", "api-capacity-report-csv", "api-team-report", "api-team-report-csv"),
        *("class-activity", "cluster-activity", "team-activity", "workload-activity"),
        *("api-class-activity", "api-cluster-activity", "api-team-activity", "api-schema"),
        *("cockpit", "mig-sets", "api-mig-set-plan", "idle-holders", "api-idle-holders"),
    }
)


@functools.lru_cache(4096)
def route_name(path: str) -> str:
    """Django resolves the path again later; that costs more than this lookup."""
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""


def kind_of(path: str, method: str, *, is_fragment: bool = False) -> Kind:
    """Only reading a list is costly: a form that people have filled in is never among what is refused first."""
    name, reads = route_name(path), method in ("GET", "HEAD", "OPTIONS")
    if name in SIGN_IN:
        return Kind.SIGN_IN
    if name in COSTLY and reads:
        return Kind.COSTLY
    if is_fragment:
        return Kind.USUAL
    if name in FIRST:
        return Kind.FIRST
    return Kind.USUAL if reads else Kind.CHANGE
