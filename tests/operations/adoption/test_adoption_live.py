"""Twenty namespaces that people made themselves are adopted and given back, on the real API server with exactly the
worker's rights; compared by an independent client.
"""

from __future__ import annotations

from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Pool
from cluster.apply.reconcile import create_once
from cluster.client.errors import ClusterRefused
from cluster.client.kube import Kube
from cluster.manifests import run as run_manifests
from cluster.manifests.adoption.labels import ADOPT_LABEL, BEFORE_ANNOTATION
from cluster.models import Cluster
from devcluster.client.kube import Api
from operations.adoption import actions, queries, reconcile
from operations.models import Adoption
from portal.core.due import Deadline, TryLater, owner_label
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as provisioning_reconcile
from tenants.provisioning import steps
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import accept, adopt, close, consent, propose, provision, undo, work
from tests.support.cluster import queued
from tests.support.cluster.removal import remove_namespace
from tests.support.waiting import wait_until
from workloads.models import Volume

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_cluster")]
NAMESPACES = 20
NOBODY = {"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "no-such"}


@pytest.fixture
def foreign_queue(admin: Api, unique: str) -> str:
    name = f"foreign-{unique}"
    spec = {"namespaceSelector": {}, "resourceGroups": []}
    admin.create(
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
    )
    return name


def settled(admin: Api, name: str) -> dict[str, Any]:
    """What is in the namespace when the controllers have made their pods."""
    wait_until(lambda: all(_has_pods(admin, name, one) for one in admin.list("apps/v1/deployments", namespace=name)))
    wait_until(lambda: admin.find("v1/configmaps", "kube-root-ca.crt", namespace=name) is not None)
    return messy.content_of(admin, name)


def _has_pods(admin: Api, name: str, deployment: dict[str, Any]) -> bool:
    return bool(admin.list("v1/pods", namespace=name, labels=f"app={deployment['metadata']['name']}"))


def test_twenty_messy_namespaces_are_adopted_and_given_back(
    admin: Api, cluster: Cluster, kube_worker: Kube, alice: User, operator: Actor, foreign_queue: str, unique: str,
    watcher: None,
) -> None:  # fmt: skip
    names = [f"messy-{unique}-{number}" for number in range(NAMESPACES)]
    for number, name in enumerate(names):
        messy.create(admin, name, number, foreign_queue)
    before = {name: settled(admin, name) for name in names}
    provisioning_reconcile.reconcile_pool(Pool.objects.create(cluster=cluster), Deadline(), kube=kube_worker)
    wait_until(lambda: all(queries.is_foreign_namespace(cluster, name) for name in names))

    rows = {name: propose(cluster, name, alice, operator) for name in names}
    for row in rows.values():
        work(row, kube_worker)
        steps.work_on_namespace(Namespace.objects.get(pk=row.namespace_id), Deadline(), kube=kube_worker)
    assert {name: messy.content_of(admin, name) for name in names} == before, "a proposal writes nothing"

    for name, row in rows.items():
        assert (row.findings, row.read_at) == ([], None), "nothing is read without the label"
        consent(admin, name, name)
        work(row, kube_worker)
        accept(row, alice)
        work(row, kube_worker)
        assert row.state is Adoption.State.ADOPTED, (name, row.findings)
        provision(row, kube_worker)
    for name in names:
        after = messy.content_of(admin, name)
        labels = after.pop("namespace")["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        foreign = {key: body for key, body in before[name].items() if key != "namespace"}
        assert {key: after.get(key) for key in foreign} == foreign
        assert {"v1/resourcequotas/gpu-portal", "kueue.x-k8s.io/v1beta2/localqueues/gpu-portal"} <= after.keys()

    for row in rows.values():
        undo(row, operator, kube_worker)
    assert {name: messy.content_of(admin, name) for name in names} == before
    for name in names:
        assert admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", name) is None


def test_a_loss_that_is_new_asks_the_owner_again(admin: Api, one: Adoption, alice: User, kube_worker: Kube) -> None:
    name = one.namespace.name
    consent(admin, name, name)
    work(one, kube_worker)
    accept(one, alice)
    admin.create(messy.thing("Deployment"), namespace=name)
    work(one, kube_worker)
    assert one.state is Adoption.State.ACCEPTED
    assert not is_owned(admin, name)
    accept(one, alice)
    work(one, kube_worker)
    assert one.state is Adoption.State.ADOPTED
    assert is_owned(admin, name)


def test_nothing_is_read_or_accepted_before_a_consent_that_names_the_team(
    admin: Api, one: Adoption, alice: User, kube_worker: Kube
) -> None:
    name = one.namespace.name
    consent(admin, name, "other-team")
    work(one, kube_worker)
    assert (one.state, one.consent, one.findings) == (Adoption.State.READING, "other-team", [])
    with pytest.raises(Refused, match="is not known yet"):
        accept(one, alice)
    assert not is_owned(admin, name)


def test_an_object_that_the_team_needs_blocks_it_until_it_is_gone(
    admin: Api, one: Adoption, alice: User, kube_worker: Kube
) -> None:
    name = one.namespace.name
    quota = {**messy.thing("ResourceQuota"), "metadata": {"name": "gpu-portal"}}
    admin.create(quota, namespace=name)
    consent(admin, name, name)
    work(one, kube_worker)
    accept(one, alice)
    work(one, kube_worker)
    assert [(one["kind"], one["name"], one["code"]) for one in one.findings if one["effect"] == "blocked"] == [
        ("ResourceQuota", "gpu-portal", "name_taken")
    ]
    assert not is_owned(admin, name)
    admin.delete("v1/resourcequotas", "gpu-portal", namespace=name)
    work(one, kube_worker)
    assert one.state is Adoption.State.ADOPTED


def test_a_worker_that_dies_after_the_write_to_the_cluster_is_continued(
    admin: Api, one: Adoption, alice: User, kube_worker: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent(admin, one.namespace.name, one.namespace.name)
    work(one, kube_worker)
    accept(one, alice)
    with monkeypatch.context() as dying:
        dying.setattr(reconcile, "record_taken", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            work(one, kube_worker)
    assert is_owned(admin, one.namespace.name)
    one.refresh_from_db()
    assert one.adopted_at is None
    work(one, kube_worker)
    assert one.state is Adoption.State.ADOPTED
    provision(one, kube_worker)


def test_pods_are_refused_while_it_is_adopted_and_come_again_after_the_undo(
    admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube
) -> None:
    """What the owner was told."""
    name = one.namespace.name
    admin.create(messy.thing("Deployment"), namespace=name)
    work(one, kube_worker)
    settled(admin, name)
    adopt(admin, one, alice, kube_worker)

    def pods() -> list[str]:
        return [pod["metadata"]["uid"] for pod in admin.list("v1/pods", namespace=name, labels="app=web")]

    [first] = pods()
    for pod in admin.list("v1/pods", namespace=name, labels="app=web"):
        admin.delete("v1/pods", pod["metadata"]["name"], namespace=name)

    def is_refused() -> bool:
        events = admin.list("v1/events", namespace=name, fields="reason=FailedCreate")
        return any("gpu-portal fence" in event["message"] for event in events)

    wait_until(is_refused)
    assert pods() == []
    undo(one, operator, kube_worker)
    # A controller that was refused tries again, each time later.
    admin.patch("apps/v1/deployments", "web", {"spec": {"replicas": 2}}, namespace=name)
    wait_until(lambda: len(pods()) == 2)
    assert first not in pods()


def test_closing_an_adopted_team_gives_the_namespace_back(
    admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube
) -> None:
    name = one.namespace.name
    before = messy.content_of(admin, name)
    adopt(admin, one, alice, kube_worker)
    close(one, operator, kube_worker)
    assert messy.content_of(admin, name) == before
    assert Adoption.objects.get(pk=one.pk).state is Adoption.State.UNDONE


def test_an_undo_without_the_labels_of_before_says_so_and_continues_when_they_are_back(
    admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube
) -> None:
    name = one.namespace.name
    before = messy.content_of(admin, name)
    adopt(admin, one, alice, kube_worker)
    kept = admin.get("v1/namespaces", name)["metadata"]["annotations"][BEFORE_ANNOTATION]
    admin.patch("v1/namespaces", name, {"metadata": {"annotations": {BEFORE_ANNOTATION: None}}})
    actions.undo_adoption(one.pk, by=operator)

    def is_told() -> bool:
        try:
            work(one, kube_worker)
        except TryLater as later:
            return BEFORE_ANNOTATION in later.text
        return False

    wait_until(is_told)
    assert is_owned(admin, name)
    admin.patch("v1/namespaces", name, {"metadata": {"annotations": {BEFORE_ANNOTATION: kept}}})
    work(one, kube_worker)
    assert one.state is Adoption.State.UNDONE
    assert messy.content_of(admin, name) == before


def test_the_worker_cannot_take_a_namespace_without_consent(
    admin: Api, one: Adoption, kube_worker: Kube, unique: str
) -> None:
    """Whatever rows say: the fence of the worker is in the API server."""
    name = one.namespace.name
    labels = {"app.kubernetes.io/managed-by": "gpu-portal", "pod-security.kubernetes.io/enforce": "restricted"}
    before = {BEFORE_ANNOTATION: f"kubernetes.io/metadata.name={name}"}

    def take(name: str, annotations: dict[str, str], **more: str) -> None:
        body = {"metadata": {"labels": labels | more, "annotations": annotations}}
        kube_worker.merge("Namespace", name=name, body=body)

    refused = pytest.raises(ClusterRefused, match="gpu-portal fence")
    with refused:
        take(name, before)
    with refused:
        take(name, before, **{ADOPT_LABEL: name})
    consent(admin, name, name)
    with refused:  # labels that it never had
        take(name, {BEFORE_ANNOTATION: "pod-security.kubernetes.io/enforce=baseline"})
    consent(admin, "kube-public", "team")
    try:
        with refused:
            take("kube-public", {BEFORE_ANNOTATION: "kubernetes.io/metadata.name=kube-public"})
    finally:
        consent(admin, "kube-public", None)
    with refused:  # not all of them
        take(name, before)
    had = admin.get("v1/namespaces", name)["metadata"]["labels"]
    lines = "\n".join(f"{key}={value}" for key, value in had.items())
    with refused:
        kube_worker.merge(
            "Namespace",
            name=name,
            body={
                "metadata": {"labels": labels, "annotations": {BEFORE_ANNOTATION: lines}, "ownerReferences": [NOBODY]}
            },
        )
    take(name, {BEFORE_ANNOTATION: lines})
    with refused:  # what it gets back is fixed now
        take(name, {BEFORE_ANNOTATION: f"{lines}\na=b"})
    with refused:
        kube_worker.delete("Namespace", name=name)
    gone = {"app.kubernetes.io/managed-by": None}
    for enforce in ("baseline", None, "restricted"):  # given back with another label than it had: privileged
        with refused:
            release(kube_worker, name, gone | {"pod-security.kubernetes.io/enforce": enforce})
    with refused:
        release(kube_worker, name, gone | {"pod-security.kubernetes.io/enforce": "privileged", "new": ""})
    admin.create(messy.thing("Secret"), namespace=name)
    foreign = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": name}}
    with refused:  # also a dry run would show its content
        kube_worker.apply(foreign, dry_run=True)
    with refused:
        kube_worker.delete("Secret", name="token", namespace=name)
    ours = {"app.kubernetes.io/managed-by": "gpu-portal"}
    account = {"kubernetes.io/service-account.name": "default"}
    token = {"name": "made", "namespace": name, "labels": ours, "annotations": account}
    with refused:
        kube_worker.create(foreign | {"metadata": token, "type": "kubernetes.io/service-account-token"})


def test_the_worker_cannot_give_up_a_namespace_of_its_own(
    admin: Api, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube
) -> None:
    """Released, Pod Security and the fences for teams would end for what was planted before."""
    provisioning_reconcile.reconcile_pool(
        Pool.objects.create(cluster=namespace_a.cluster), Deadline(), kube=kube_worker
    )
    steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    name = namespace_a.name
    for value in ("", "pod-security.kubernetes.io/enforce=privileged"):
        body = {"metadata": {"annotations": {BEFORE_ANNOTATION: value}}}
        with pytest.raises(ClusterRefused, match="only an adoption sets the annotation"):
            kube_worker.merge("Namespace", name=name, body=body)
    gone = {"app.kubernetes.io/managed-by": None, "pod-security.kubernetes.io/enforce": None}
    with pytest.raises(ClusterRefused, match="must always have the label"):
        release(kube_worker, name, gone)
    admin.patch("v1/namespaces", name, {"metadata": {"annotations": {BEFORE_ANNOTATION: ""}}})
    with pytest.raises(ClusterRefused, match="must always have the label"):
        release(kube_worker, name, gone)


@pytest.mark.parametrize(
    "change",
    [
        {"hostNetwork": True},
        {"hostPID": True},
        {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
        {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}}},
    ],
    ids=str,
)
def test_the_worker_cannot_plant_a_job_that_is_privileged(
    admin: Api, namespace_a: Namespace, a100: GpuClass, kube_worker: Kube, change: dict[str, Any]
) -> None:
    provisioning_reconcile.reconcile_pool(
        Pool.objects.create(cluster=namespace_a.cluster), Deadline(), kube=kube_worker
    )
    steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    job = run_manifests.job(queued.spec(a100, namespace_a, name="planted"))
    pod = job["spec"]["template"]["spec"]
    if "securityContext" in change:
        pod["containers"][0] |= change
    elif "volumes" in change:
        pod["volumes"] += change["volumes"]
    else:
        pod |= change
    with pytest.raises(ClusterRefused, match="Jobs of the worker must not be privileged"):
        kube_worker.create(job, dry_run=True)


def release(kube: Kube, name: str, labels: dict[str, str | None]) -> None:
    body = {"metadata": {"labels": labels, "annotations": {BEFORE_ANNOTATION: None}}}
    kube.merge("Namespace", name=name, body=body)


def test_an_adopted_namespace_that_somebody_deletes_becomes_one_of_the_portal(
    admin: Api, one: Adoption, alice: User, kube_worker: Kube
) -> None:
    adopt(admin, one, alice, kube_worker)
    remove_namespace(admin, admin.get("v1/namespaces", one.namespace.name))
    wait_until(lambda: admin.find("v1/namespaces", one.namespace.name) is None)
    provision(one, kube_worker)
    row = Namespace.objects.get(pk=one.namespace_id)
    assert row.origin == Namespace.Origin.PORTAL
    assert BEFORE_ANNOTATION not in admin.get("v1/namespaces", row.name)["metadata"].get("annotations", {})


def test_a_volume_of_the_portal_stays_after_an_undo_and_the_team_can_be_closed(
    admin: Api, one: Adoption, alice: User, operator: Actor, kube_worker: Kube
) -> None:
    adopt(admin, one, alice, kube_worker)
    namespace = Namespace.objects.get(pk=one.namespace_id)
    volume = Volume.objects.create(namespace=namespace, name="data", size_gib=1)
    claim = {**messy.thing("PersistentVolumeClaim"), "metadata": {"name": "data", "namespace": namespace.name}}
    claim["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "gpu-portal",
        "gpu-portal/owner": owner_label(volume),
    }
    create_once(kube=kube_worker, cluster_id=namespace.cluster_id, owner=owner_label(volume), manifest=claim)
    undo(one, operator, kube_worker)
    volume.refresh_from_db()
    assert volume.gone_at is not None
    row = close(one, operator, kube_worker)
    assert admin.find("v1/persistentvolumeclaims", "data", namespace=row.name_in_cluster) is not None


def test_who_may_do_what(one: Adoption, alice: User, bob: User, operator: Actor, kube_worker: Kube) -> None:
    with pytest.raises(Refused, match="Only operators"):
        propose(one.namespace.cluster, "other", alice, Actor(alice, via="page"))
    with pytest.raises(Refused, match="Not found"):
        accept(one, bob)
    with pytest.raises(Refused, match="Only owners"):
        actions.accept_adoption(one.pk, [], by=operator)
    with pytest.raises(Refused, match="nothing to undo"):
        actions.undo_adoption(one.pk, by=operator)
    with pytest.raises(Refused, match="belongs to the system"):
        propose(one.namespace.cluster, "kube-system", alice, operator)


def is_owned(admin: Api, name: str) -> bool:
    return "app.kubernetes.io/managed-by" in admin.get("v1/namespaces", name)["metadata"]["labels"]
