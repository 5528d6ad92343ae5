"""Workers die at every write of an adoption and of its undo: to the database and to the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from operations.adoption import actions
from operations.adoption.findings import losses
from operations.adoption.reconcile import reconcile_adoption
from operations.models import Adoption
from portal.core import due
from portal.core.due import Deadline
from tenants.models import Namespace
from tenants.provisioning import reconcile as provisioning_reconcile
from tenants.provisioning import steps
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import accept, consent
from tests.support.processes.deaths import Deaths, WorkerDied
from tests.support.rows import mirrored
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_cluster"),
    pytest.mark.timeout(300),
]
THINGS = ("ResourceQuota", "LimitRange", "Pod", "RoleBinding", "PersistentVolumeClaim", "Secret", "NetworkPolicy")


def test_workers_die_at_every_write_of_an_adoption_and_its_undo(
    admin: Api, cluster: Cluster, kube_worker: Kube, alice: User, olga: User, unique: str
) -> None:
    provisioning_reconcile.reconcile_pool(Pool.objects.create(cluster=cluster), Deadline(), kube=kube_worker)
    operator = Actor(olga, via="page")
    phase = "reading"

    def live(name: str, one_pass: Callable[[], None]) -> dict[str, Any]:
        """Proposed, accepted, consented, adopted, provisioned, undone."""
        nonlocal phase
        since = Event.objects.latest("pk").pk if Event.objects.exists() else 0
        metadata = {"name": name, "labels": messy.LABELS[1]}
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for kind in THINGS:
            admin.create(messy.thing(kind), namespace=name)
        wait_until(lambda: admin.find("v1/configmaps", "kube-root-ca.crt", namespace=name) is not None)
        wait_until(lambda: admin.find("v1/serviceaccounts", "default", namespace=name) is not None)
        before = messy.content_of(admin, name)
        look(admin, cluster, name)
        row = actions.propose_adoption(cluster, name, slug=name, name="Messy", owner=alice.email, by=operator)

        def reached(condition: Callable[[], Any]) -> None:
            wait_until(
                lambda: one_pass() or (row.refresh_from_db() or condition()), within_s=120, every_s=0.05, story=story
            )

        phase = "reading"
        consent(admin, name, name)
        reached(lambda: losses(row.findings))
        phase = "adopting"
        accept(row, alice)
        reached(lambda: row.state is Adoption.State.ADOPTED)
        reached(lambda: is_open(admin, name))
        found: dict[str, Any] = {"adopted": sorted(messy.content_of(admin, name))}
        phase = "undoing"
        actions.undo_adoption(row.pk, by=operator)
        reached(lambda: row.undone_at is not None)
        assert messy.content_of(admin, name) == before
        assert admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", name) is None
        found["events"] = Counter(Event.objects.filter(pk__gt=since).values_list("verb", flat=True))
        mails = Delivery.objects.filter(event__pk__gt=since).select_related("user")
        found["mails"] = Counter((one.user.name, one.subject.replace(name, "NAME")) for one in mails)
        return found

    def story() -> str:
        rows = [*Adoption.objects.all(), *Namespace.objects.all()]
        told = [f"{row} {row.error_code} {row.error_text} {row.attempts}" for row in rows]
        return "\n".join([*told, phase, *map(str, deaths.sites)])

    def work(kube: Any) -> None:
        for model, reconcile in ((Adoption, reconcile_adoption), (Namespace, steps.work_on_namespace)):
            model.objects.update(due_at=timezone.now(), leased_until=None)
            while (claimed := due.claim(model)) is not None:
                due.run_claimed(claimed, partial(reconcile, kube=kube))

    undisturbed = live(f"messy-{unique}-1", partial(work, kube_worker))
    Adoption.objects.all().delete()
    Namespace.objects.update(origin="unadopted")
    # Not a query: objects are created in threads, which have no connection of their own.
    deaths = Deaths(kube_worker, lambda: phase)

    def mortal() -> None:
        with suppress(WorkerDied), deaths.at_work():
            work(deaths)

    disturbed = live(f"messy-{unique}-2", mortal)
    assert disturbed == undisturbed
    died_at = Counter(site.split()[0] for _state, site, _after in deaths.sites)
    # The namespace taken and given back; objects made and deleted, by kind.
    assert died_at["merge"] == 4
    assert died_at["create"] >= 14
    assert died_at["delete"] >= 14
    assert died_at["UPDATE"] > 10
    assert died_at["INSERT"] > 6


def look(admin: Api, cluster: Cluster, name: str) -> None:
    """The mirror as a watcher would have it."""
    seen = {"Namespace": [admin.get("v1/namespaces", name)], "Pod": admin.list("v1/pods", namespace=name)}
    mirrored.seen(cluster, **seen)


def is_open(admin: Api, name: str) -> bool:
    queue = admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", name)
    return queue is not None and queue["spec"].get("stopPolicy", "None") == "None"
