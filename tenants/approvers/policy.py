"""The rights to decide requests, and who may change them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accounts.core.actor import Actor
from accounts.models import Role
from accounts.people.policy import may_administer
from portal.core.errors import Refusal


@dataclass(frozen=True)
class ApproverRight:
    """The right of one approver. `classes`: slugs, None: all of them. `teams`: ids of the approver's own teams; a
    delegate has no more rights than the approver, so a delegate decides nothing for these teams.
    """

    approver_id: int
    name: str
    classes: frozenset[str] | None
    teams: frozenset[int] = frozenset()

    def reaches(self, tenant_id: int | None, asked_by: int) -> bool:
        """False, for a delegated right, for the approver's own requests and for the approver's own teams."""
        return asked_by != self.approver_id and tenant_id not in self.teams

    def covers(self, slug: str) -> bool:
        return self.classes is None or slug in self.classes


@dataclass(frozen=True)
class ApproverRights:
    """All rights of a person to decide: by the own role, and by approvers whose delegate the person is now."""

    own: ApproverRight | None = None
    lent: tuple[ApproverRight, ...] = ()

    def __bool__(self) -> bool:
        return self.own is not None or bool(self.lent)

    @property
    def classes(self) -> frozenset[str] | None:
        """Returns the slugs of all decidable classes, None for all; for one request use `classes_for`."""
        return _all_classes_of([*([self.own] if self.own else []), *self.lent])

    def classes_for(self, tenant_id: int | None, asked_by: int) -> frozenset[str] | None:
        """Returns the decidable classes for a request of that team (None: not created yet) by that person."""
        lent = [right for right in self.lent if right.reaches(tenant_id, asked_by)]
        return _all_classes_of([*([self.own] if self.own else []), *lent])

    def lender(self, slug: str, tenant_id: int | None, asked_by: int) -> ApproverRight | None:
        """Returns the approver whose delegate decides here; None if the own right is enough, or without any right."""
        if self.own and self.own.covers(slug):
            return None
        lent = (right for right in self.lent if right.reaches(tenant_id, asked_by))
        return next((right for right in lent if right.covers(slug)), None)

    def lenders(self, slugs: Iterable[str], tenant_id: int | None, asked_by: int) -> list[str]:
        """Returns the names of approvers for whom the person decides these classes as delegate, sorted."""
        found = (self.lender(slug, tenant_id, asked_by) for slug in slugs)
        return sorted({right.name for right in found if right})


def _all_classes_of(rights: list[ApproverRight]) -> frozenset[str] | None:
    slugs: set[str] = set()
    for right in rights:
        if right.classes is None:
            return None
        slugs |= right.classes
    return frozenset(slugs)


def may_change_classes(by: Actor, *, approver: int) -> Refusal | None:
    """Whether the actor may set which classes a person decides."""
    if refusal := may_administer(by):
        return refusal
    if by.user is not None and by.user_id == approver:
        return Refusal(
            "own_roles", "You cannot change your own approval rights. Ask another administrator.", status=403
        )
    return None


def may_be_given_classes(name: str, *, is_approver: bool) -> Refusal | None:
    if is_approver:
        return None
    return Refusal("not_approver", f"{name} does not have the role approver. Grant that role first.", status=409)


def may_see_inbox(by: Actor, rights: ApproverRights) -> Refusal | None:
    if by.has_role(Role.APPROVER) or rights:
        return None
    return Refusal("not_allowed", "Only approvers can open the inbox.", status=403)
