"""What the contract says of itself as a whole, and of each call: server, contact, tags, scopes."""

from __future__ import annotations

from typing import Any

from django.conf import settings

DESCRIPTION = """\
Classes of GPUs, quota, notebooks and jobs of the teams that share a cluster. The rules are those of the pages. Send a
token with each call, as `Authorization: Bearer gpt_…`; the page *API tokens* creates one. All refusals have the same
body, with a stable `code`. Within `/api/v1/` fields, addresses and codes are only added."""
# The first part of an address → what the calls are about.
TAGS = {
    "adoptions": "Namespaces that existed before the portal, and become those of a team.",
    "announcements": "Announcements of operators to the caller.",
    "bundles": "Classes and units for new teams.",
    "capacity": "Units of each class, of all teams.",
    "classes": "What can be requested: guarantees and limits, life cycle, capacity.",
    "cluster": "The state of the cluster, the banner of its operators, and observe-only.",
    "delegations": "Delegates of approvers.",
    "events": "Who did what, and when.",
    "gpu-faults": "Faults of GPUs, what they mean and which runs they concern.",
    "idle-holders": "Runs that hold units while their GPUs are idle, as measured.",
    "images": "Container images, and whether they fit a class.",
    "inbox": "Requests that the caller decides.",
    "invitations": "Invitations to the caller.",
    "joins": "The caller's requests to join a team.",
    "maintenances": "Maintenance of nodes, for operators.",
    "me": "The caller, the token, and the caller's notices.",
    "mig-sets": "MIG layouts of several nodes, planned together, for operators.",
    "nodes": "What operators measured of nodes.",
    "openapi.json": "This contract.",
    "operators": "Lists of all teams, for staff.",
    "people": "Accounts, for administrators.",
    "queue": "All queued runs, for staff.",
    "registries": "Credentials for registries of images.",
    "requests": "Quota requests, their lines, comments and decisions.",
    "search": "Search over what the caller may see.",
    "secrets": "Secrets of a team.",
    "team-requests": "Requests for new teams.",
    "teams": "Teams: members, quota, namespace, tokens.",
    "tokens": "API tokens of the caller.",
    "trials": "Teams to try the portal.",
    "volumes": "Volumes of a team.",
    "workloads": "Notebooks and jobs, and their runs.",
}


def add_document(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A hook of drf-spectacular. Raises KeyError for a tag without a description."""
    operators = {"name": "Operators of this portal", "url": settings.PORTAL_URL}
    # An identifier of the form that SPDX has for what is not in its list.
    licence = {"name": "No licence is stated", "identifier": "LicenseRef-not-stated"}
    result["info"] |= {"description": DESCRIPTION, "contact": operators, "license": licence}
    result["servers"] = [{"url": settings.PORTAL_URL, "description": "This portal."}]
    operations = [one for operations in result["paths"].values() for one in operations.values()]
    result["tags"] = [{"name": tag, "description": TAGS[tag]} for tag in sorted({one["tags"][0] for one in operations})]
    for one in operations:
        # Calls for everyone say so: without `security`, a reader has to know that there is no default.
        one.setdefault("security", [])
        # The page of the API leaves out this last paragraph, because it shows the scopes as labels.
        one["description"] = "\n\n".join(filter(None, [one.get("description", ""), scope_sentence(one)]))
    return result


def scope_sentence(operation: dict[str, Any]) -> str:
    scopes = [scope for one in operation["security"] for scope in one.get("token", ())]
    if not scopes:
        return "No token is needed."
    return f"The token needs the scope {' or '.join(f'`{scope}`' for scope in scopes)}."
