"""A namespace that existed before is adopted, and given back."""

from __future__ import annotations

from typing import Any

from accounts.core.actor import Actor
from accounts.models import Role, User
from catalog.models import Pool
from operations.adoption import actions
from operations.adoption.findings import losses
from operations.models import Adoption
from tests.faults.crashes.operations.common import look, mails_are_sent, the_cluster
from tests.faults.crashes.operations.teams import QUEUES, is_open
from tests.faults.crashes.types import Ground, Operation, Place
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import accept, consent
from tests.support.rows import make
from tests.support.waiting import wait_until

THINGS = ("ResourceQuota", "LimitRange", "Pod", "RoleBinding", "PersistentVolumeClaim", "Secret", "NetworkPolicy")


def proposed(ground: Ground, place: Place) -> dict[str, Any]:
    """Proposed by an operator, consented to, and read by a worker."""
    cluster = the_cluster(place)
    Pool.objects.create(cluster=cluster)
    alice, olga = make.user("Alice"), make.user("Olga", roles=[Role.OPERATOR, Role.ADMIN])
    name = place.name
    ground.admin.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": messy.LABELS[1]}}
    )
    for kind in THINGS:
        ground.admin.create(messy.thing(kind), namespace=name)
    for made in (("v1/configmaps", "kube-root-ca.crt"), ("v1/serviceaccounts", "default")):
        wait_until(lambda made=made: ground.admin.find(*made, namespace=name) is not None)  # type: ignore[misc]
    before = sorted(messy.content_of(ground.admin, name))
    look(ground, place)
    by = Actor(olga, via="page")
    actions.propose_adoption(cluster, name, slug=name, name="Messy", owner=alice.email, by=by)
    consent(ground.admin, name, name)

    def is_read() -> bool:
        look(ground, place)
        ground.work(place)
        return bool(losses(Adoption.objects.get().findings))

    wait_until(is_read, within_s=60, every_s=0.05)
    return {"before": before}


def accept_it(place: Place) -> None:
    row = Adoption.objects.get()
    if row.state is Adoption.State.PROPOSED:
        accept(row, User.objects.get(name="Alice"))


def is_adopted(ground: Ground, place: Place) -> bool:
    return Adoption.objects.get().state is Adoption.State.ADOPTED and is_open(ground, place)


def adopted(ground: Ground, place: Place) -> dict[str, Any]:
    known = proposed(ground, place)
    ground.call("adoption", place)

    def is_there() -> bool:
        look(ground, place)
        ground.work(place)
        return is_adopted(ground, place)

    wait_until(is_there, within_s=60, every_s=0.05)
    return known


def undo(place: Place) -> None:
    row = Adoption.objects.get()
    if row.state is Adoption.State.ADOPTED:
        actions.undo_adoption(row.pk, by=Actor(User.objects.get(name="Olga"), via="page"))


def is_undone(ground: Ground, place: Place) -> bool:
    gone = ground.admin.find(QUEUES, place.name) is None
    return Adoption.objects.get().undone_at is not None and gone and mails_are_sent()


def content(ground: Ground, place: Place) -> Any:
    found = sorted(messy.content_of(ground.admin, place.name))
    return [name.replace(place.name, "NAME") for name in found]


OPERATIONS: dict[str, Operation] = {
    "adoption": Operation(proposed, accept_it, is_adopted, look, content),
    "undo of an adoption": Operation(adopted, undo, is_undone, look, content),
}
