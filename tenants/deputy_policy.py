"""By whose right somebody decides, and who may name a deputy. Pure, as tenants/policy.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.actor import Actor
from accounts.models import Role, Scope
from accounts.policy import may_administer, scope_refusal
from portal.errors import Refusal

PERIOD_MAX = timedelta(days=92)


@dataclass(frozen=True)
class Right:
    """One approver's: `classes`, slugs, None: all of them. `teams`: that the approver belongs to, by id; who lends a
    right gives no more than this, so a deputy decides about none of them.
    """

    approver_id: int
    name: str
    classes: frozenset[str] | None
    teams: frozenset[int] = frozenset()

    def reaches(self, tenant_id: int | None, asked_by: int) -> bool:
        """As a lent one: never what the approver asked for, or a team of the approver's."""
        return asked_by != self.approver_id and tenant_id not in self.teams

    def covers(self, slug: str) -> bool:
        return self.classes is None or slug in self.classes


@dataclass(frozen=True)
class Rights:
    """What somebody decides by: the role's own right, and those of approvers whose deputy the person is now."""

    own: Right | None = None
    lent: tuple[Right, ...] = ()

    def __bool__(self) -> bool:
        return self.own is not None or bool(self.lent)

    @property
    def classes(self) -> frozenset[str] | None:
        """Slugs of all classes, None for all of them; about a request ask `classes_for`."""
        return _all_of([*([self.own] if self.own else []), *self.lent])

    def classes_for(self, tenant_id: int | None, asked_by: int) -> frozenset[str] | None:
        """Of a request of that team (None: there is none yet) by that person."""
        lent = [right for right in self.lent if right.reaches(tenant_id, asked_by)]
        return _all_of([*([self.own] if self.own else []), *lent])

    def lender(self, slug: str, tenant_id: int | None, asked_by: int) -> Right | None:
        """Whose deputy decides here; None where the own right is enough, or none is."""
        if self.own and self.own.covers(slug):
            return None
        lent = (right for right in self.lent if right.reaches(tenant_id, asked_by))
        return next((right for right in lent if right.covers(slug)), None)

    def lenders(self, slugs: Iterable[str], tenant_id: int | None, asked_by: int) -> list[str]:
        """Names of those whose deputy decides about these classes, sorted."""
        found = (self.lender(slug, tenant_id, asked_by) for slug in slugs)
        return sorted({right.name for right in found if right})


def _all_of(rights: list[Right]) -> frozenset[str] | None:
    slugs: set[str] = set()
    for right in rights:
        if right.classes is None:
            return None
        slugs |= right.classes
    return frozenset(slugs)


def may_change_right(by: Actor, *, approver: int) -> Refusal | None:
    """Say about which classes somebody decides."""
    if refusal := may_administer(by):
        return refusal
    if by.user is not None and by.user_id == approver:
        return Refusal("own_roles", "You cannot say what you decide yourself; ask another administrator.", status=403)
    return None


def may_be_given(name: str, *, is_approver: bool) -> Refusal | None:
    if is_approver:
        return None
    return Refusal("not_approver", f"{name} is no approver and decides nothing. Give that role first.", status=409)


def may_name(by: Actor, rights: Rights) -> Refusal | None:
    """What was lent is not lent on."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if rights.own is None:
        return Refusal("not_allowed", "Deputies are named by approvers, for their own classes.", status=403)
    if rights.own.classes == frozenset():
        return Refusal("nothing_to_give", "You decide about no class: there is nothing to give.", status=409)
    return None


def unknown(email: str) -> Refusal:
    return Refusal("unknown_person", f"Nobody here has the address '{email[:80]}'.", "email")


def deputy_refusal(email: str, *, is_active: bool, is_self: bool) -> Refusal | None:
    if is_self:
        return Refusal("is_self", "A deputy is somebody else.", "email")
    if not is_active:
        return Refusal("suspended", f"The account of '{email[:80]}' is suspended; choose somebody else.", "email", 409)
    return None


def period_refusal(starts: datetime, ends: datetime, *, now: datetime) -> Refusal | None:
    if ends <= max(starts, now):
        return Refusal("bad_period", "The last day has to be after the first one, and not over.", "ends_at")
    if ends - starts > PERIOD_MAX:
        text = f"Somebody stands in for at most {PERIOD_MAX.days} days; choose an earlier last day."
        return Refusal("bad_period", text, "ends_at")
    return None


def may_end(by: Actor, *, approver: int, deputy: int, is_over: bool) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if by.user_id not in (approver, deputy):
        return Refusal("not_allowed", "This is ended by the approver or by the deputy.", status=403)
    if is_over:
        return Refusal("is_over", "This has ended already; nothing was changed.", status=409)
    return None


def may_see_inbox(by: Actor, rights: Rights) -> Refusal | None:
    if by.has_role(Role.APPROVER) or rights:
        return None
    return Refusal("not_allowed", "The inbox is for approvers.", status=403)
