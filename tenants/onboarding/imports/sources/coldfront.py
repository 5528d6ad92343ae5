"""ColdFront: `coldfront dumpdata auth.user project resource allocation`, which lists rows of its tables. Pure.

Of accounts only names and the email are read. Projects become teams, the principal investigator (PI) owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.core.errors import refuse
from tenants.onboarding.imports.sources.builder import PlanBuilder, address, json_of, records, text_at
from tenants.onboarding.imports.types import ImportOptions, ImportPlan, Person

# What ColdFront adds to a new installation (`initial_setup`).
ROLES = {"Manager": "manager", "User": "member"}
PROJECT_STATES = ("Active", "New")
# A renewal that is requested does not end what is granted.
ALLOCATION_STATES = ("Active", "Renewal Requested")
EXPORT = "coldfront dumpdata auth.user project resource allocation"
NEEDED = (
    "auth.user",
    "project.projectstatuschoice",
    "project.project",
    "project.projectuserrolechoice",
    "project.projectuserstatuschoice",
)
Rows = Mapping[str, Mapping[object, Mapping[str, Any]]]


def read(data: bytes, options: ImportOptions) -> ImportPlan:
    """Raises Refused: too_large, not_json, bad_value: errors of the whole file."""
    tables = _tables(data)
    builder = PlanBuilder(options)
    slugs = _add_teams(builder, tables)
    for pk, row in tables.get("project.projectuser", {}).items():
        _add_member(builder, f"project.projectuser {pk}", row, tables, slugs)
    for pk, row in tables.get("allocation.allocation", {}).items():
        _add_allocation(builder, f"allocation.allocation {pk}", row, tables, slugs)
    return builder.plan("ColdFront")


def _tables(data: bytes) -> Rows:
    found: dict[str, dict[object, Mapping[str, Any]]] = {}
    for record in records(json_of(data), "A dump"):
        model, pk, fields = record.get("model"), record.get("pk"), record.get("fields")
        if not isinstance(model, str) or not isinstance(fields, dict):
            raise refuse("bad_value", "Each object of a dump has model, pk and fields.", field="file")
        if not isinstance(pk, int):
            text = f"{model} has no number as pk. Export without --natural-primary and --natural-foreign."
            raise refuse("bad_value", text, field="file")
        found.setdefault(model, {})[pk] = fields
    if missing := [name for name in NEEDED if name not in found]:
        text = f"The dump has no {', '.join(missing)}. Export with: {EXPORT}."
        raise refuse("bad_value", text, field="file")
    return found


def _add_teams(builder: PlanBuilder, tables: Rows) -> dict[object, str]:
    """Project → slug of its team."""
    slugs = {}
    for pk, row in tables["project.project"].items():
        place, title = f"project.project {pk}", text_at(row, "title")
        state = _choice(tables, "project.projectstatuschoice", row.get("status"))
        if state not in PROJECT_STATES:
            builder.left_out(place, "team", title, f"The project is {state or 'without a status'}.")
            continue
        owner = _person(tables, row.get("pi"))
        slug = builder.team(place, key=place, name=title, owners=[owner] if owner else [])
        if slug:
            slugs[pk] = slug
    return slugs


def _add_member(
    builder: PlanBuilder, place: str, row: Mapping[str, Any], tables: Rows, slugs: Mapping[object, str]
) -> None:
    project, person = _key(row.get("project")), _person(tables, row.get("user"))
    slug = slugs.get(project)
    title = f"{slug or project} {person.email if person else row.get('user')}"
    state = _choice(tables, "project.projectuserstatuschoice", row.get("status"))
    role = _choice(tables, "project.projectuserrolechoice", row.get("role"))
    if slug is None:
        builder.left_out(place, "member", title, "Its project is not imported.")
    elif state != "Active":
        builder.left_out(place, "member", title, f"The person is {state or 'without a status'} in the project.")
    elif person is None:
        builder.refused(place, "member", title, "user", "The dump has no such auth.user. Export auth.user as well.")
    elif _key(row.get("user")) == _key(tables["project.project"][project].get("pi")):
        builder.member(place, team=slug, person=person, role="owner")
    else:
        builder.member(place, team=slug, person=person, role=ROLES.get(role, role))


def _add_allocation(
    builder: PlanBuilder, place: str, row: Mapping[str, Any], tables: Rows, slugs: Mapping[object, str]
) -> None:
    project = _key(row.get("project"))
    slug = slugs.get(project)
    title = f"{slug or project}"
    state = _choice(tables, "allocation.allocationstatuschoice", row.get("status"))
    resources = row.get("resources")
    if slug is None:
        builder.left_out(place, "quota", title, "Its project is not imported.")
    elif state not in ALLOCATION_STATES:
        builder.left_out(place, "quota", title, f"The allocation is {state or 'without a status'}.")
    elif not isinstance(resources, list) or not resources:
        builder.refused(place, "quota", title, "resources", "The allocation has no resource. Add it in ColdFront.")
    else:
        for resource in resources:
            name = _choice(tables, "resource.resource", resource) or f"resource {resource}"
            until = text_at(row, "end_date")
            builder.grant(place, team=slug, theirs=name, units=row.get("quantity"), until=until)


def _person(tables: Rows, pk: object) -> Person | None:
    row = tables["auth.user"].get(_key(pk))
    if row is None:
        return None
    return Person(address(text_at(row, "email")), f"{text_at(row, 'first_name')} {text_at(row, 'last_name')}".strip())


def _choice(tables: Rows, table: str, pk: object) -> str:
    return text_at(tables.get(table, {}).get(_key(pk), {}), "name")


def _key(pk: object) -> object:
    """A natural key is a list, which names no row here."""
    return pk if isinstance(pk, int) else None
