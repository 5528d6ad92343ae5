"""Waldur: one JSON object of three lists of its REST API, `projects`, `user_permissions` and `resources`. Pure.

They are the answers of /api/projects/, /api/user-permissions/ and /api/marketplace-resources/. A project becomes a
team; the owners of its organization own it. A component of an offering is a class: "Offering/component".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.core.errors import refuse
from tenants.onboarding.imports.sources.builder import PlanBuilder, address, json_of, records, text_at, whole_number
from tenants.onboarding.imports.types import ImportOptions, ImportPlan, Person

OWNER = "CUSTOMER.OWNER"
ROLES = {"PROJECT.MANAGER": "manager", "PROJECT.ADMIN": "member", "PROJECT.MEMBER": "member"}
RESOURCE_STATES = ("OK", "Updating")
LISTS = ("projects", "user_permissions", "resources")
Record = Mapping[str, Any]


def read(data: bytes, options: ImportOptions) -> ImportPlan:
    """Raises Refused: too_large, not_json, bad_value: errors of the whole file."""
    document = json_of(data)
    if not isinstance(document, dict) or (missing := [name for name in LISTS if name not in document]):
        text = f"The file has to be one object with the lists {', '.join(LISTS)}."
        raise refuse("bad_value", text + (f" Missing: {', '.join(missing)}." if isinstance(document, dict) else ""))
    projects, permissions, resources = (records(document[name], name) for name in LISTS)
    builder = PlanBuilder(options)
    slugs: dict[str, str] = {}
    for project in projects:
        _add_team(builder, project, permissions, slugs)
    for number, permission in enumerate(permissions, 1):
        _add_members(builder, f"user_permissions {number}", permission, projects, slugs)
    for resource in resources:
        _add_quota(builder, resource, slugs, {_uuid(one, "uuid"): one for one in projects})
    return builder.plan("Waldur")


def _add_team(builder: PlanBuilder, project: Record, permissions: list[Record], slugs: dict[str, str]) -> None:
    uuid, name = _uuid(project, "uuid"), text_at(project, "name")
    place = f"project {uuid or name}"
    if project.get("is_removed") is True:
        builder.left_out(place, "team", name, "The project is removed.")
        return
    organization = _uuid(project, "customer_uuid")
    owners = [_person(one) for one in permissions if _is_valid(one) and _is_owner(one, organization)]
    slug = builder.team(place, key=place, name=name, owners=owners)
    if slug:
        slugs[uuid] = slug


def _add_members(
    builder: PlanBuilder, place: str, permission: Record, projects: list[Record], slugs: Mapping[str, str]
) -> None:
    role, scope, person = text_at(permission, "role_name"), _uuid(permission, "scope_uuid"), _person(permission)
    title = f"{text_at(permission, 'scope_name')} {person.email or person.name}"
    if not _is_valid(permission):
        builder.left_out(place, "member", title, "The permission is not active.")
    elif role == OWNER:
        theirs = [_uuid(one, "uuid") for one in projects if _uuid(one, "customer_uuid") == scope]
        for uuid in theirs:
            if uuid in slugs:
                builder.member(place, team=slugs[uuid], person=person, role="owner")
        if not any(uuid in slugs for uuid in theirs):
            builder.left_out(place, "member", title, "No project of this organization is imported.")
    elif role not in ROLES:
        text = f"The portal has no role like '{role[:80]}'. Add the person on the page of the team, if needed."
        builder.left_out(place, "member", title, text)
    elif scope not in slugs:
        builder.left_out(place, "member", title, "Its project is not imported.")
    else:
        builder.member(place, team=slugs[scope], person=person, role=ROLES[role])


def _add_quota(
    builder: PlanBuilder, resource: Record, slugs: Mapping[str, str], projects: Mapping[str, Record]
) -> None:
    project, state = _uuid(resource, "project_uuid"), text_at(resource, "state")
    slug, title = slugs.get(project), f"{text_at(resource, 'project_name')} {text_at(resource, 'name')}"
    place = f"resource {_uuid(resource, 'uuid') or text_at(resource, 'name')}"
    limits = resource.get("limits")
    if slug is None:
        builder.left_out(place, "quota", title, "Its project is not imported.")
    elif state not in RESOURCE_STATES:
        builder.left_out(place, "quota", title, f"The resource is {state or 'without a state'}.")
    elif not isinstance(limits, dict) or not limits:
        builder.left_out(place, "quota", title, "The resource has no limits.")
    else:
        until = text_at(resource, "end_date") or text_at(projects.get(project, {}), "end_date")
        for component, amount in limits.items():
            theirs = f"{text_at(resource, 'offering_name')}/{component}"
            if whole_number(amount) == 0:
                builder.left_out(place, "quota", f"{slug} {theirs}", "The limit is 0.")
            else:
                builder.grant(place, team=slug, theirs=theirs, units=amount, until=until)


def _is_valid(permission: Record) -> bool:
    return permission.get("is_active", True) is not False and permission.get("scope_is_removed") is not True


def _is_owner(permission: Record, organization: str) -> bool:
    is_here = bool(organization) and _uuid(permission, "scope_uuid") == organization
    return is_here and text_at(permission, "role_name") == OWNER


def _person(permission: Record) -> Person:
    name = text_at(permission, "user_full_name") or text_at(permission, "user_name")
    return Person(address(text_at(permission, "user_email")), name)


def _uuid(record: Record, name: str) -> str:
    """Waldur writes them without hyphens; other clients add them."""
    return text_at(record, name).replace("-", "").lower()
