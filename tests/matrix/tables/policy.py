"""Who may send which request, and the result: one row for each method of each route of the URL map.

Pure functions, and an independent second version of the rules: nothing is imported from the code under test. A row
gives each role's answer about an object of that role's own team. The answers for strangers, tokens and people who lost
a right follow from it in the same way for all rows (`expected`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TEAM = ("viewer", "member", "manager", "owner")
STAFF = ("approver", "other approver", "operator", "auditor", "admin")
# A token has one scope; that of `decide` is an approver's, the others are an owner's.
TOKENS = ("token read", "token launch", "token request", "token decide", "token admin")
DEAD = {
    "anonymous": "not_signed_in",
    "suspended": "not_signed_in",
    "token expired": "token_expired",
    "token revoked": "token_revoked",
    "token suspended": "account_suspended",
}
# This person was a member when the session began.
REMOVED = "removed"
ROLES = (*TEAM, *STAFF, *TOKENS, *DEAD, REMOVED)
# Every role is in one of these parts, whose tests run at the same time.
PARTS = {
    "part of the team": ("viewer", "member"),
    "heads of the team": ("manager", "owner"),
    "approvers": ("approver", "other approver"),
    "staff": ("operator", "auditor", "admin"),
    "others": (*TOKENS, *DEAD, REMOVED),
}
# Whose the object is, seen from the role that asks. "own": made by the role itself, where that matters.
RELATIONS = ("own", "others", "foreign", "deleted", "random")

STATUS = {
    "": 0,
    "not_signed_in": 401,
    "token_expired": 401,
    "token_revoked": 401,
    "account_suspended": 401,
    "missing_scope": 403,
    "lacks_scope": 403,
    "not_allowed": 403,
    "not_your_class": 403,
    "private_notebook": 403,
    "own_request": 403,
    "own_team": 403,
    "not_found": 404,
    # A form about several objects shows the answer for each of them on the page.
    "told on the page": 200,
}  # every other refusal is 409 or 422

Answers = Mapping[str, str]


def everybody(code: str = "", **others: str) -> dict[str, str]:
    """Returns the refusal code by role, "" for success. `others` sets single roles, "other_approver" for "other
    approver".
    """
    found = dict.fromkeys(("stranger", *TEAM, *STAFF), code)
    return found | {role.replace("_", " "): said for role, said in others.items()}


def only(*roles: str, done: str = "", code: str = "not_allowed", stranger: str = "not_found") -> dict[str, str]:
    """`done`: the answer for `roles`, who are allowed."""
    return everybody(code) | dict.fromkeys(roles, done) | {"stranger": stranger}


ANYBODY = everybody()
IN_SIGHT = everybody(stranger="not_found")
LAUNCHERS = ("member", "manager", "owner")
MANAGERS = ("manager", "owner")
OPERATORS = ("operator", "admin")
# Exists only for operators.
NOT_THERE = only(*OPERATORS, code="not_found")
# Visible only to staff.
OF_STAFF = everybody("not_found") | dict.fromkeys(STAFF, "not_allowed")
ADMIN_ONLY = everybody("not_found", admin="")
MANAGES = only(*MANAGERS, *OPERATORS)
MANAGES_OWN = only("member", *MANAGERS, *OPERATORS)
DECIDES = everybody("not_allowed", stranger="not_found", approver="", other_approver="not_your_class")
ADMINS_TEAM = only(*MANAGERS, "admin")


@dataclass(frozen=True)
class Row:
    """`about`: the object in the address (world.py). `done`: the status on success; one of several may be allowed.
    `verbs`: the Events that are then written. `writes`: whether rows change. `others`, `foreign`, `deleted`, `random`:
    the answers about such an object where they differ from `answers`.
    """

    method: str
    route: str
    answers: Answers
    about: str = ""
    done: int | tuple[int, ...] = 200
    verbs: tuple[str, ...] = ()
    scope: str = "read"
    body: str = ""
    others: Answers | None = None
    foreign: Answers | None = None
    deleted: Answers | None = None
    random: Answers | None = None
    writes: bool = field(default=False)
    # The reason why the answer is public, without an account.
    open_because: str = ""

    @property
    def statuses(self) -> tuple[int, ...]:
        return self.done if isinstance(self.done, tuple) else (self.done,)

    @property
    def is_api(self) -> bool:
        return self.route.startswith("api-")


def expected(row: Row, role: str, relation: str) -> frozenset[str]:
    """Returns the expected refusal codes, "" for success. It is one code, with one exception: for an object that does
    not exist, a role that is refused in any case may get its 403 before the 404.
    """
    if row.open_because:
        return frozenset({""})
    if role in DEAD:
        return frozenset({DEAD[role] if row.is_api else "not_signed_in"})
    if role in TOKENS and not row.is_api:
        return frozenset({"not_signed_in"})
    if role in TOKENS and row.scope == "any":
        return frozenset({""})
    if role in TOKENS and role != f"token {row.scope}":
        return frozenset({"missing_scope"})
    who = {"token decide": "approver", REMOVED: "stranger"}.get(role, "owner" if role in TOKENS else role)
    answers = getattr(row, relation, None)
    if answers is not None:
        return frozenset({answers[who]})
    if relation == "foreign" and who in TEAM:
        who = "stranger"
    told = row.answers[who]
    if relation not in ("deleted", "random"):
        return frozenset({told})
    return frozenset({"not_found", told if STATUS.get(told) == 403 else "not_found"})


def read(route: str, answers: Answers = IN_SIGHT, about: str = "", **values: Any) -> Row:
    return Row("GET", route, answers, about, **values)


def write(
    method: str,
    route: str,
    verb: str,
    answers: Answers,
    about: str = "",
    *,
    done: int | tuple[int, ...] = 0,
    scope: str = "",
    **values: Any,
) -> Row:
    """A page redirects (302) after success."""
    done = done or (200 if route.startswith("api-") else 302)
    verbs = tuple(verb.split())
    return Row(method, route, answers, about, done, verbs, scope=scope or "launch", writes=bool(verb), **values)
