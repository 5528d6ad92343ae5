"""A plan: what the export of another system says, in the portal's terms. And what became of each of its rows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from django.utils import timezone

FILE_BYTES_MAX = 5 * 2**20
ROWS_MAX = 2_000


class Outcome(StrEnum):
    """`CREATE`: done, or possible in a dry run. `DIFFERS`: exists with other values, and is not changed."""

    CREATE = "create"
    EXISTS = "exists"
    DIFFERS = "differs"
    REFUSED = "refused"
    LEFT_OUT = "left_out"
    KEPT = "kept"


@dataclass(frozen=True)
class Person:
    email: str
    name: str = ""


@dataclass(frozen=True)
class ImportedTeam:
    """`place`: where the file says it. `owners`: the first one with an account owns the new team."""

    place: str
    slug: str
    name: str
    owners: tuple[Person, ...]
    # What the parser changed, as a sentence.
    note: str = ""
    kind = "team"

    @property
    def title(self) -> str:
        return self.slug


@dataclass(frozen=True)
class ImportedMember:
    place: str
    team: str
    person: Person
    role: str
    kind = "member"

    @property
    def title(self) -> str:
        return f"{self.team} {self.person.email}"


@dataclass(frozen=True)
class ImportedGrant:
    """`ends`: the last instant of the last day."""

    place: str
    team: str
    gpu_class: str
    units: int
    ends: datetime
    kind = "quota"

    @property
    def until(self) -> date:
        return timezone.localdate(self.ends)

    @property
    def title(self) -> str:
        return f"{self.team} {self.gpu_class}"


@dataclass(frozen=True)
class SetAside:
    """A row that needs no action: refused by the parser, left out, or kept where it is."""

    place: str
    kind: str
    title: str
    outcome: Outcome
    text: str
    field: str = ""


PlanRow = ImportedTeam | ImportedMember | ImportedGrant | SetAside


@dataclass(frozen=True)
class ImportPlan:
    """`source`: the name of the other system."""

    source: str
    rows: tuple[PlanRow, ...]


@dataclass(frozen=True)
class ImportOptions:
    """What the other system does not say. `classes`, `teams`: their name → ours; "" for ours leaves a class out.

    `ours`: slugs of the catalog. `until`: the last day where the export has none. `owner`: of teams without one.
    Of JupyterHub: `domain` makes addresses of user names, `into` is the team of users without a group, and the rest
    says where the claims of the homes are.
    """

    ours: Collection[str]
    classes: Mapping[str, str] = field(default_factory=dict)
    teams: Mapping[str, str] = field(default_factory=dict)
    until: date | None = None
    owner: str = ""
    domain: str = ""
    into: str = ""
    namespace: str = ""
    claim_template: str = "claim-{user_server}"
    slug_scheme: str = "safe"


@dataclass(frozen=True)
class SettledRow:
    """What became of a row. `code`: of the refusal; `text` says why and what to do instead."""

    place: str
    kind: str
    title: str
    outcome: Outcome
    text: str
    field: str = ""
    code: str = ""


def report_digest(rows: Iterable[SettledRow]) -> str:
    """The same for the same report."""
    return hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()
