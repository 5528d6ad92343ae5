"""The actions that set which classes an approver decides. accounts/people/actions.py sets the role itself."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import Role, User
from accounts.people.actions import lock_actor_and_target
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from portal.core.errors import get_or_refuse, refuse_if
from tenants.approvers import policy as approver_policy
from tenants.core.notifications import page_url
from tenants.models import ApproverFor

ALL_CLASSES = "every class"


@transaction.atomic
def grant_class(user_id: int, gpu_class: str | None, *, by: Actor) -> User:
    """Lets the approver decide the class of that slug; None: every class, including future ones. A repeated grant sends
    no second mail.

    Raises Refused: not_found (404), not_allowed, own_roles (403), not_approver (409).
    """
    by, target, _ = lock_actor_and_target(by, user_id)
    refuse_if(approver_policy.may_change_classes(by, approver=target.pk))
    one = _class(gpu_class)
    refuse_if(approver_policy.may_be_given_classes(target.name, is_approver=target.has_role(Role.APPROVER)))
    _row, is_new = ApproverFor.objects.get_or_create(user=target, gpu_class=one)
    if is_new:
        event = record(by, "approver.named", target, after={"class": gpu_class or ALL_CLASSES})
        subject = f"You can now decide requests for {one.name if one else ALL_CLASSES}"
        deliver(event, [target], subject=subject, body=page_url("/inbox"))
    return target


@transaction.atomic
def revoke_class(user_id: int, gpu_class: str | None, *, by: Actor) -> User:
    """Reverts `grant_class`, effective at once; past decisions stay. Raises Refused: not_found (404), also if the class
    was not granted; not_allowed, own_roles (403).
    """
    by, target, _ = lock_actor_and_target(by, user_id)
    refuse_if(approver_policy.may_change_classes(by, approver=target.pk))
    one = _class(gpu_class)
    get_or_refuse(ApproverFor.objects.all(), user=target, gpu_class=one).delete()
    event = record(by, "approver.ended", target, before={"class": gpu_class or ALL_CLASSES})
    subject = f"You can no longer decide requests for {one.name if one else ALL_CLASSES}"
    deliver(event, [target], subject=subject, body=page_url("/inbox"))
    return target


def _class(slug: str | None) -> GpuClass | None:
    return (
        None
        if slug is None
        else get_or_refuse(GpuClass.objects.filter(cluster=read_queries.current_cluster()), slug=slug)
    )
