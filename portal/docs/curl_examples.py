"""The API equivalent of a page: the call that returns the page's content, or does the same as its form.

URLs are URI templates. `{slug}` is taken from the page's URL. `{?team=tenant,state}` is taken from the page's URL or
filters, if present; the name after "=" is the page's own name of the parameter, if it differs.
"""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.utils import timezone

V1 = "/api/v1"
PAGE_CALLS = {
    "all-tokens": f"{V1}/tokens?owner=everybody",
    "all-usage": f"{V1}/operators/usage-report{{?month}}",
    "all-teams": f"{V1}/operators/teams{{?q,state,gpu_class=class,idle_days=idle,sort}}",
    "catalog": f"{V1}/classes",
    "catalog-choose": f"{V1}/classes",
    "catalog-compare": f"{V1}/classes",
    "class": f"{V1}/classes/{{slug}}",
    "class-activity": f"{V1}/classes/{{slug}}/activity",
    "cluster": f"{V1}/cluster",
    "cluster-activity": f"{V1}/operators/activity",
    "delegations": f"{V1}/delegations",
    "grants": f"{V1}/teams/{{tenant}}/grants",
    "health": f"{V1}/operators/health",
    "history": f"{V1}/events{{?team=tenant,verb,row}}",
    "home": f"{V1}/me",
    "idle-holders": f"{V1}/idle-holders",
    "inbox": f"{V1}/inbox{{?team,gpu_class=class,group}}",
    "launch-link": f"{V1}/teams",
    "adoption": f"{V1}/adoptions/{{tenant}}",
    "adoptions": f"{V1}/adoptions",
    "announcement": f"{V1}/announcements",
    "announcements": f"{V1}/operators/announcements",
    "maintenance": f"{V1}/maintenances/{{pk}}",
    "maintenances": f"{V1}/maintenances",
    "nodes": f"{V1}/operators/nodes{{?q,state}}",
    "mig-sets": f"{V1}/mig-sets",
    "notices": f"{V1}/me/notices{{?show}}",
    "people": f"{V1}/people{{?q,role}}",
    "person": f"{V1}/people/{{pk}}",
    "queue": f"{V1}/queue{{?gpu_class=class,team,reason}}",
    "request": f"{V1}/requests/{{pk}}",
    "requests": f"{V1}/requests{{?team=tenant,state}}",
    "search": f"{V1}/search{{?q}}",
    "secrets": f"{V1}/secrets{{?team=tenant}}",
    "start": f"{V1}/joins",
    "team": f"{V1}/teams/{{tenant}}",
    "team-activity": f"{V1}/teams/{{tenant}}/activity",
    "team-history": f"{V1}/events{{?team=tenant,verb,row}}",
    "team-images": f"{V1}/registries{{?team=tenant}}",
    "team-request": f"{V1}/team-requests",
    "team-tokens": f"{V1}/teams/{{tenant}}/tokens",
    "team-usage": f"{V1}/teams/{{tenant}}/usage-report{{?month}}",
    "tenant-home": f"{V1}/teams/{{tenant}}/live",
    "volumes": f"{V1}/volumes{{?team=tenant}}",
    "workload-maintenance": f"{V1}/workloads/{{name}}/maintenance{{?team=tenant}}",
    "workload-activity": f"{V1}/workloads/{{name}}/activity{{?team=tenant}}",
    "workload-change": f"{V1}/workloads/{{name}}{{?team=tenant}}",
    "workloads": f"{V1}/workloads{{?team=tenant}}",
}
# Pages with a form for a request: the kind of its line. Values to be filled in are in capital letters.
REQUEST_FORMS = {"request-new": "base", "grant-reclaim": "reclaim"}
# Pages with a form for another object.
CREATE_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "person-new": (f"{V1}/people", {"email": "ADDRESS", "name": "NAME"}),
    "maintenance-new": (
        f"{V1}/maintenances",
        {"nodes": ["NODE"], "kind": "hardware", "reason": "WHY", "starts_at": "TIME", "ends_at": "TIME"},
    ),
}
PAGES_WITHOUT_CALL = {
    "all-teams-csv": "the rows of a page as a file; in the API the list of that page",
    "capacity-report-csv": "the rows of a page as a file; in the API also as a file",
    "all-usage-csv": "the lines of a page as a file; in the API also as a file",
    "team-usage-csv": "the lines of a page as a file; in the API also as a file",
    "account": "about passwords, second factors and sessions, which tokens cannot change",
    "api-docs": "describes the calls",
    "api-section": "describes the calls",
    "help": "describes the pages",
    "api-schema": "is itself a call",
    "catalog-changes": "not in the API: history of class definitions; the events of each class are",
    "catalog-editor": "not in the API: `manage.py catalog` reads and applies the catalog as a file",
    "class-edit": "not in the API: `manage.py catalog` reads and applies the catalog as a file",
    "class-new": "not in the API: `manage.py catalog` reads and applies the catalog as a file",
    "cockpit": "not in the API: its figures are those of other pages; programs read these and the metrics",
    "image-edit": "not in the API: `manage.py catalog` reads and applies the catalog as a file",
    "image-new": "not in the API: `manage.py catalog` reads and applies the catalog as a file",
    "observe-only": f"{V1}/cluster/observe-only",
    "team-import": "not in the API: `manage.py import_teams` reads exports of other systems",
    "launch": "has its own call, made from its form",
    "live": "a stream for pages; calls wait with ?wait=",
    "livez": "a probe",
    "login": "signs in to a browser session; calls use tokens",
    "mfa_authenticate": "signs in to a browser session; calls use tokens",
    "next-steps": "a part of a page; in the API a part of the workload's status",
    "announcements-now": "a part of every page",
    "node": "what was measured of it is in the API (`/api/v1/nodes/<name>/measurements`); for the rest use kubectl",
    "node-mig": "not in the API: use manage.py mig plan",
    "password-code": "signs in to a browser session; calls use tokens",
    "oidc-back": "signs in to a browser session; calls use tokens",
    "open": "leads to a notebook in a browser",
    "quick-start": "a part of a page",
    "readyz": "a probe",
    "second-factor": "about the second factor of a session",
    "session": "about the session of a browser",
    "styleguide": "about the pages themselves",
    "tokens": "has its own call, to test a token",
    "workload": "has its own call, which waits",
    "workload-actions": "a part of a page",
    "workload-faults": "a part of a page; in the API a list of its own",
    "workload-idle": "a part of a page; in the API a list of its own",
    "workload-limits": "a part of a page",
    "workload-log": "is in the API under this address",
    "workload-next-steps": "a part of a page; in the API a part of the workload's status",
}
PERIOD = timedelta(days=90)
NAMES = re.compile(r"\{(\??)([\w,=]+)\}")
TOKEN = '-H "Authorization: Bearer $TOKEN"'


def curl_for_page(request: HttpRequest) -> str:
    """The API equivalent of the requested page; "" if it has none."""
    match = request.resolver_match
    if match is None or request.method != "GET":
        return ""
    name, own = match.url_name or "", {key: str(value) for key, value in match.kwargs.items()}
    if name in REQUEST_FORMS:
        return curl("POST", f"{V1}/requests", body=_asked(own["tenant"], REQUEST_FORMS[name]))
    if name in CREATE_FORMS:
        address, body = CREATE_FORMS[name]
        return curl("POST", address, body=body)
    return curl("GET", PAGE_CALLS[name], {**request.GET.dict(), **own}) if name in PAGE_CALLS else ""


def _asked(tenant: str, kind: str) -> dict[str, Any]:
    day = (timezone.now() + PERIOD).date()
    if kind == "reclaim":
        line = {"kind": kind, "gpu_class": "CLASS", "units": 1, "starts_at": f"{day}T00:00:00Z"}
    else:
        line = {"gpu_class": "CLASS", "units": 1, "ends_at": f"{day}T23:59:59Z"}
    return {"team": tenant, "justification": "WHY", "lines": [line]}


def curl(
    method: str, template: str, values: dict[str, str] | None = None, *, body: Any = None, is_open: bool = False
) -> str:
    """A shell command with $PORTAL and $TOKEN. Without `values` the parameters of the path stay unexpanded."""
    address = _quoted(template if values is None else expand_template(template, values))
    parts = ["curl" if method == "GET" else f"curl -X {method}", *([] if is_open else [TOKEN])]
    if body is None:
        return " ".join([*parts, address])
    text = shlex.quote(json.dumps(body, indent=2, ensure_ascii=False))
    return " \\\n  ".join([*parts, "-H 'Content-Type: application/json'", address, f"-d {text}"])


def expand_template(template: str, values: dict[str, str]) -> str:
    def expanded(found: re.Match[str]) -> str:
        if not found[1]:
            return quote(values[found[2]], safe="")
        names = [name.split("=") for name in found[2].split(",")]
        query = {name[0]: values[name[-1]] for name in names if values.get(name[-1])}
        return f"?{urlencode(query)}" if query else ""

    return NAMES.sub(expanded, template)


def _quoted(path: str) -> str:
    """Encodes the path, so that the shell expands nothing but `$PORTAL`."""
    return f'"$PORTAL{path}"' if re.search(r"[?&{}]", path) else f"$PORTAL{path}"
