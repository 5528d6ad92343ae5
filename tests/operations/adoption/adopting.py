"""The steps of an adoption, as people and the worker take them."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.models import User
from cluster.client.kube import Kube
from cluster.manifests.adoption.labels import ADOPT_LABEL
from cluster.models import Cluster
from devcluster.client.kube import Api
from operations.adoption import actions
from operations.adoption.findings import losses
from operations.adoption.reconcile import reconcile_adoption
from operations.models import Adoption
from portal.core.due import Deadline, TryLater
from tenants.lifecycle.actions import set_namespace_state
from tenants.models import Namespace
from tenants.provisioning import steps
from tests.support.waiting import wait_until


def propose(cluster: Cluster, name: str, owner: User, operator: Actor) -> Adoption:
    return actions.propose_adoption(cluster, name, slug=name, name=f"Team {name}", owner=owner.email, by=operator)


def work(row: Adoption, kube: Kube) -> None:
    row.refresh_from_db()
    reconcile_adoption(row, Deadline(), kube=kube)
    row.refresh_from_db()


def accept(row: Adoption, owner: User) -> None:
    shown = [actions.loss_text(key) for key in losses(row.findings)]
    actions.accept_adoption(row.pk, shown, by=Actor(owner, via="page"))


def consent(admin: Api, name: str, team: str | None) -> None:
    admin.patch("v1/namespaces", name, {"metadata": {"labels": {ADOPT_LABEL: team}}})


def provision(row: Adoption, kube: Kube) -> None:
    told: list[str] = []

    def is_open() -> bool:
        namespace = Namespace.objects.get(pk=row.namespace_id)
        try:
            steps.work_on_namespace(namespace, Deadline(), kube=kube)
        except TryLater as later:
            told.append(later.text)
            return False
        return kube.get("ClusterQueue", name=namespace.name).body["spec"].get("stopPolicy", "None") == "None"

    wait_until(is_open, story=lambda: "\n".join(told[-3:]))


def adopt(admin: Api, row: Adoption, owner: User, kube: Kube) -> None:
    consent(admin, row.namespace.name, row.namespace.name)
    work(row, kube)
    accept(row, owner)
    work(row, kube)
    assert row.state is Adoption.State.ADOPTED, row.findings
    provision(row, kube)


def undo(row: Adoption, operator: Actor, kube: Kube) -> None:
    actions.undo_adoption(row.pk, by=operator)

    def is_undone() -> bool:
        work(row, kube)
        return row.undone_at is not None

    wait_until(is_undone)


def close(one: Adoption, operator: Actor, kube: Kube) -> Namespace:
    """At once, and nothing is kept."""
    row = set_namespace_state(one.namespace_id, to="closed", grace_hours=0, keep_days=0, by=operator)

    def is_gone() -> bool:
        row.refresh_from_db()
        steps.work_on_namespace(row, Deadline(), kube=kube)
        row.refresh_from_db()
        return row.gone_at is not None

    wait_until(is_gone)
    return row
