"""The reference of the API in sections, each with the schemas that it needs. Made once in each process."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from django.utils.text import slugify

from portal.docs.contract import contract_text
from portal.docs.reference import FieldDoc, OperationDoc, Part, fields_by_schema, operations_by_theme


@dataclass(frozen=True)
class ApiSection:
    slug: str
    title: str
    operations: list[OperationDoc]
    schemas: dict[str, list[FieldDoc]]


@dataclass(frozen=True)
class FoundCall:
    """A call, as the search shows it."""

    id: str
    method: str
    path: str
    summary: str
    section: str


@functools.cache
def contract() -> Part:
    found: Part = json.loads(contract_text())
    return found


@functools.cache
def sections() -> tuple[ApiSection, ...]:
    schemas = fields_by_schema(contract())
    return tuple(
        ApiSection(slugify(title), title, found, _linked(found, schemas))
        for title, found in operations_by_theme(contract()).items()
        if found
    )


def section(slug: str) -> ApiSection | None:
    return next((one for one in sections() if one.slug == slug), None)


@functools.cache
def schema_places() -> dict[str, str]:
    """Name of each schema → the slug of the first section that has it."""
    found: dict[str, str] = {}
    for one in sections():
        for name in one.schemas:
            found.setdefault(name, one.slug)
    return dict(sorted(found.items()))


@functools.cache
def calls() -> tuple[FoundCall, ...]:
    return tuple(
        FoundCall(call.id, call.method, call.path, call.summary, one.slug)
        for one in sections()
        for call in one.operations
    )


def _linked(operations: list[OperationDoc], schemas: dict[str, list[FieldDoc]]) -> dict[str, list[FieldDoc]]:
    """The schemas to which the operations link, and those to which these link."""
    wanted = [field.link for one in operations for field in (*one.parameters, *one.body)]
    wanted += [answer.link for one in operations for answer in (*one.answers, *one.refusals)]
    found: dict[str, list[FieldDoc]] = {}
    while wanted:
        name = wanted.pop()
        if name and name not in found:
            found[name] = schemas[name]
            wanted += [field.link for field in schemas[name]]
    return dict(sorted(found.items()))
