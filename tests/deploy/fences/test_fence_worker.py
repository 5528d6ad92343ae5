"""The first admission policy: the worker can write only in the portal's namespaces and queue objects, whatever its
RBAC.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from catalog.trials import objects
from cluster.manifests.site import DEFAULT
from devcluster.client.kube import APPLY, MERGE, Api, ApiError, path_of
from tests.support.cluster.identities import Impersonating, namespace

Json = dict[str, Any]
FENCE = "gpu-portal fence"
OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
QUEUES = "kueue.x-k8s.io/v1beta2"

# One small valid object of every namespaced kind that the worker may write.
SPECS: dict[str, Json] = {
    "v1/secrets": {"kind": "Secret", "stringData": {"token": "t"}},
    "v1/resourcequotas": {"kind": "ResourceQuota", "spec": {"hard": {"pods": "1"}}},
    "v1/limitranges": {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
    "v1/serviceaccounts": {"kind": "ServiceAccount"},
    "v1/services": {"kind": "Service", "spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    "v1/persistentvolumeclaims": {
        "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    "networking.k8s.io/v1/networkpolicies": {"kind": "NetworkPolicy", "spec": {"podSelector": {}}},
    "rbac.authorization.k8s.io/v1/rolebindings": {
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gpu-portal-logs"},
        "subjects": [{"kind": "ServiceAccount", "name": "doors", "namespace": "gpu-portal"}],
    },
    "batch/v1/jobs": {
        "kind": "Job",
        "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu-portal", "gpu-portal/class": "a100"}},
        "spec": {
            "template": {
                "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu-portal", "gpu-portal/class": "a100"}},
                "spec": {
                    "restartPolicy": "Never",
                    "priorityClassName": "gpu-portal",
                    "automountServiceAccountToken": False,
                    "containers": [
                        {
                            "name": "c",
                            "image": "example.org/i:1",
                            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
                        }
                    ],
                },
            }
        },
    },
    "resource.k8s.io/v1/resourceclaimtemplates": {
        "kind": "ResourceClaimTemplate",
        "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
    },
    f"{QUEUES}/localqueues": {"kind": "LocalQueue"},
}
DRY_RUN = pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "for real"])


def manifest(resource: str, name: str, in_namespace: str = "", labels: Json | None = None) -> Json:
    spec = SPECS.get(resource, {})
    metadata = {"name": name} | ({"namespace": in_namespace} if in_namespace else {})
    all_labels = OURS | spec.get("metadata", {}).get("labels", {}) if labels is None else labels
    body = {"apiVersion": resource.rpartition("/")[0], **spec, "metadata": metadata | {"labels": all_labels}}
    return body | {"spec": {"clusterQueue": in_namespace}} if resource.endswith("localqueues") else body


def create(api: Api, resource: str, body: Json, in_namespace: str = "", *, dry_run: bool = True) -> tuple[int, str]:
    """(status, text of the answer) of a raw POST."""
    params = {"dryRun": "All"} if dry_run else {}
    status, data = api.raw("POST", path_of(resource, namespace=in_namespace), body, params=params)
    return status, data.decode()


def assert_fenced(answer: tuple[int, str]) -> None:
    status, text = answer
    assert status == 422, text
    assert FENCE in text


@pytest.mark.parametrize("resource", SPECS)
def test_the_worker_may_create_each_of_its_kinds_in_our_namespace(worker: Api, ours: str, resource: str) -> None:
    status, text = create(worker, resource, manifest(resource, "probe", ours), ours)

    assert status == 201, text


@DRY_RUN
@pytest.mark.parametrize("resource", SPECS)
@pytest.mark.parametrize("where", ["kube-system", "foreign", "gpu-portal"])
def test_the_worker_creates_nothing_elsewhere(
    worker: Api, admin: Api, foreign: str, where: str, resource: str, dry_run: bool
) -> None:
    place, name = foreign if where == "foreign" else where, f"probe-{uuid.uuid4().hex[:8]}"
    try:
        answer = create(worker, resource, manifest(resource, name, place), place, dry_run=dry_run)

        assert_fenced(answer)
        assert admin.find(resource, name, namespace=place) is None
    finally:
        admin.delete(resource, name, namespace=place)  # only a broken policy leaves one, and it must not stay


@DRY_RUN
@pytest.mark.parametrize("body", [{}, {"stringData": {"amount": "0"}}], ids=["empty", "changing"])
@pytest.mark.parametrize("content_type", [APPLY, MERGE])
def test_a_patch_of_a_foreign_secret_is_neither_a_write_nor_a_read(
    worker: Api, admin: Api, foreign: str, content_type: str, body: Json, dry_run: bool
) -> None:
    params = ({"fieldManager": "gpu-portal", "force": "true"} if content_type == APPLY else {}) | (
        {"dryRun": "All"} if dry_run else {}
    )
    identity = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "salary", "namespace": foreign}}
    before = admin.get("v1/secrets", "salary", namespace=foreign)

    status, data = worker.raw(
        "PATCH",
        path_of("v1/secrets", "salary", namespace=foreign),
        (identity if content_type == APPLY else {}) | body,
        params=params,
        content_type=content_type,
    )

    assert_fenced((status, data.decode()))
    assert before["data"]["amount"] not in data.decode()
    assert admin.get("v1/secrets", "salary", namespace=foreign) == before


def test_the_worker_reads_no_secret_at_all(worker: Api, foreign: str, ours: str) -> None:
    for place in (foreign, ours):
        for path in (path_of("v1/secrets", "salary", namespace=place), path_of("v1/secrets", namespace=place)):
            with pytest.raises(ApiError) as refused:
                worker.request("GET", path)
            assert refused.value.status == 403


def test_the_worker_deletes_nothing_elsewhere(worker: Api, admin: Api, foreign: str) -> None:
    with pytest.raises(ApiError, match=FENCE):
        worker.delete("v1/secrets", "salary", namespace=foreign)

    assert admin.find("v1/secrets", "salary", namespace=foreign)


def test_a_namespace_of_the_worker_is_ours_and_restricted_from_the_start(worker: Api) -> None:
    name = f"fence-new-{uuid.uuid4().hex[:8]}"
    unlabelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    other_manager = namespace(name, **{"app.kubernetes.io/managed-by": "Helm"})
    privileged = namespace(name, **{"pod-security.kubernetes.io/enforce": "privileged"})
    device_admin = namespace(name, **{"resource.kubernetes.io/admin-access": "true"})

    for body in (unlabelled, other_manager, privileged, device_admin):
        assert_fenced(create(worker, "v1/namespaces", body))
    assert create(worker, "v1/namespaces", namespace(name))[0] == 201


@pytest.mark.parametrize("content_type", [APPLY, MERGE])
@DRY_RUN
def test_the_worker_cannot_take_over_an_existing_namespace(
    worker: Api, admin: Api, foreign: str, content_type: str, dry_run: bool
) -> None:
    params = ({"fieldManager": "gpu-portal", "force": "true"} if content_type == APPLY else {}) | (
        {"dryRun": "All"} if dry_run else {}
    )

    for name in (foreign, "kube-system", "gpu-portal"):
        status, data = worker.raw(
            "PATCH", path_of("v1/namespaces", name), namespace(name), params=params, content_type=content_type
        )
        assert_fenced((status, data.decode()))
        assert "app.kubernetes.io/managed-by" not in admin.get("v1/namespaces", name)["metadata"].get("labels", {})


def test_the_worker_deletes_no_namespace_but_ours(worker: Api, admin: Api, foreign: str, ours: str) -> None:
    for name in (foreign, "gpu-portal"):
        with pytest.raises(ApiError, match=FENCE):
            worker.delete("v1/namespaces", name)
        assert "deletionTimestamp" not in admin.get("v1/namespaces", name)["metadata"]

    assert worker.raw("DELETE", path_of("v1/namespaces", ours), params={"dryRun": "All"})[0] == 200


def test_our_label_stays_on_our_namespace(worker: Api, ours: str) -> None:
    for labels in ({"app.kubernetes.io/managed-by": None}, {"pod-security.kubernetes.io/enforce": "baseline"}):
        with pytest.raises(ApiError, match=FENCE):
            worker.patch("v1/namespaces", ours, {"metadata": {"labels": labels}})

    worker.patch("v1/namespaces", ours, {"metadata": {"labels": {"gpu-portal/owner": "tenants.namespace.5"}}})


POD_SECURITY = "pod-security.kubernetes.io"


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("enforce-version", "v1.18"),
        ("enforce-version", "v1.33"),
        ("warn", "privileged"),
        ("warn-version", "v1.18"),
        ("audit", "baseline"),
        ("audit-version", "v1.18"),
        ("of-a-later-kubernetes", "privileged"),
    ],
)
def test_no_label_weakens_pod_security(worker: Api, ours: str, label: str, value: str) -> None:
    """The rules of an old version allow what `restricted` refuses today."""
    labels = {f"{POD_SECURITY}/{label}": value}
    assert_fenced(create(worker, "v1/namespaces", namespace(f"fence-new-{uuid.uuid4().hex[:8]}", **labels)))
    body = {"metadata": {"labels": labels}}
    for content_type in (MERGE, APPLY):
        identity = namespace(ours, **labels) if content_type == APPLY else body
        params = {"dryRun": "All"} | ({"fieldManager": "probe", "force": "true"} if content_type == APPLY else {})
        status, data = worker.raw(
            "PATCH", path_of("v1/namespaces", ours), identity, params=params, content_type=content_type
        )
        assert_fenced((status, data.decode()))


@pytest.mark.parametrize("label", ["warn", "audit", "enforce-version", "warn-version", "audit-version"])
def test_the_strictest_values_are_allowed(worker: Api, ours: str, label: str) -> None:
    labels = {f"{POD_SECURITY}/{label}": "latest" if label.endswith("-version") else "restricted"}
    assert create(worker, "v1/namespaces", namespace(f"fence-new-{uuid.uuid4().hex[:8]}", **labels))[0] == 201


def test_what_an_administrator_pinned_does_not_stop_the_worker(worker: Api, admin: Api, ours: str) -> None:
    """The worker may leave it as it is, or remove it, but not set it to another version."""
    key = f"{POD_SECURITY}/enforce-version"
    admin.patch("v1/namespaces", ours, {"metadata": {"labels": {key: "v1.30"}}})
    worker.patch("v1/namespaces", ours, {"metadata": {"labels": {"gpu-portal/owner": "tenants.namespace.5"}}})
    with pytest.raises(ApiError, match=FENCE):
        worker.patch("v1/namespaces", ours, {"metadata": {"labels": {key: "v1.29"}}})
    worker.patch("v1/namespaces", ours, {"metadata": {"labels": {key: None}}})
    assert key not in admin.get("v1/namespaces", ours)["metadata"]["labels"]


def test_the_fence_does_not_lean_on_rbac(services: Json, ours: str) -> None:
    """The worker's name with all rights: the policy alone has to refuse what RBAC would refuse first."""
    admin = services["kubeconfigs"]["admin"]
    almighty = Impersonating(admin, user="system:serviceaccount:gpu-portal:worker", group="system:masters")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    rbac = "rbac.authorization.k8s.io/v1"
    everywhere = [
        (f"{rbac}/clusterroles", {"kind": "ClusterRole", "rules": []}),
        (f"{rbac}/clusterrolebindings", {"kind": "ClusterRoleBinding", "roleRef": role}),
        ("scheduling.k8s.io/v1/priorityclasses", {"kind": "PriorityClass", "value": 5}),
        (f"{QUEUES}/topologies", {"kind": "Topology", "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}}),
        ("v1/nodes", {"kind": "Node"}),
        ("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"kind": "ValidatingWebhookConfiguration"}),
    ]

    for resource, spec in everywhere:
        assert_fenced(create(almighty, resource, manifest(resource, "fence-probe") | spec))
    for name in ("cluster-admin", "admin", "edit"):
        body = manifest(f"{rbac}/rolebindings", "probe", ours) | {"roleRef": role | {"name": name}}
        assert_fenced(create(almighty, f"{rbac}/rolebindings", body, ours))
    own_role = manifest(f"{rbac}/rolebindings", "probe", ours) | {"roleRef": role | {"kind": "Role"}}
    assert_fenced(create(almighty, f"{rbac}/rolebindings", own_role, ours))
    assert create(almighty, "v1/configmaps", manifest("v1/configmaps", "probe") | {"kind": "ConfigMap"}, ours)[0] == 201


QUEUE_KINDS = {"resourceflavors": "ResourceFlavor", "cohorts": "Cohort", "clusterqueues": "ClusterQueue"}


def queue_object(plural: str, name: str, labels: Json | None = None) -> Json:
    """A valid one of the worker."""
    specs = {
        "resourceflavors": {"nodeTaints": [{"key": "gpu-portal/class", "value": "a100", "effect": "NoSchedule"}]},
        "cohorts": {},
        "clusterqueues": {
            "stopPolicy": "Hold",
            "cohortName": "gpu-portal-fences",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        },
    }
    metadata = {"name": name, "labels": OURS if labels is None else labels}
    return {"apiVersion": QUEUES, "kind": QUEUE_KINDS[plural], "metadata": metadata, "spec": specs[plural]}


@pytest.mark.parametrize("plural", QUEUE_KINDS)
def test_the_worker_changes_only_queue_objects_that_carry_our_label(worker: Api, admin: Api, plural: str) -> None:
    resource, name = f"{QUEUES}/{plural}", f"gpu-portal-{uuid.uuid4().hex[:8]}"
    own = queue_object(plural, name)
    somebodys = queue_object(plural, f"{name}-foreign", {})
    adopt = {"metadata": {"labels": OURS}}
    abandon = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    admin.create(somebodys)
    try:
        assert_fenced(create(worker, resource, own | {"metadata": {"name": name}}))
        worker.create(own)
        with pytest.raises(ApiError, match=FENCE):
            worker.patch(resource, name, abandon)
        for attempt in (adopt, {"metadata": {"labels": {"a": "b"}}}):
            with pytest.raises(ApiError, match=FENCE):
                worker.patch(resource, f"{name}-foreign", attempt)
        with pytest.raises(ApiError, match=FENCE):
            worker.delete(resource, f"{name}-foreign")

        worker.patch(resource, name, {"metadata": {"labels": {"a": "b"}}})
        worker.delete(resource, name)
    finally:
        admin.delete(resource, name)
        admin.delete(resource, f"{name}-foreign")


@pytest.mark.parametrize(
    ("name", "status", "refusal"),
    [
        ("cluster-admin", 403, "is attempting to grant RBAC permissions not currently held"),
        ("view", 403, "is attempting to grant RBAC permissions not currently held"),
        # RBAC lets users bind a role whose rights they hold themselves; here only the policy refuses.
        ("gpu-portal-worker", 422, FENCE),
    ],
)
def test_the_worker_binds_no_other_role(worker: Api, ours: str, name: str, status: int, refusal: str) -> None:
    resource = "rbac.authorization.k8s.io/v1/rolebindings"
    body = manifest(resource, "probe", ours)
    body["roleRef"] = body["roleRef"] | {"name": name}

    answer = create(worker, resource, body, ours)

    assert answer[0] == status
    assert refusal in answer[1]


@pytest.mark.parametrize("role", ["gpu-portal-tenant", "gpu-portal-logs"])
def test_the_worker_binds_the_two_shipped_roles(worker: Api, ours: str, role: str) -> None:
    resource = "rbac.authorization.k8s.io/v1/rolebindings"
    body = manifest(resource, "probe", ours)
    body["roleRef"] = body["roleRef"] | {"name": role}

    status, text = create(worker, resource, body, ours)

    assert status == 201, text


# ---- changing the priority of a Job ----------------------------------------------------------------------------------

PRIORITY = "kueue.x-k8s.io/priority-class"


@pytest.fixture
def job(worker: Api, admin: Api, ours: str) -> Iterator[str]:
    """A Job of the worker in a namespace of the portal; suspended, so that it creates no pod."""
    body = manifest("batch/v1/jobs", "probe", ours)
    body = {**body, "spec": {**body["spec"], "suspend": True}}
    body["metadata"]["labels"] = {**body["metadata"]["labels"], PRIORITY: "batch"}
    body["metadata"]["annotations"] = {"gpu-portal/note": "a"}
    status, text = create(worker, "batch/v1/jobs", body, ours, dry_run=False)
    assert status == 201, text
    yield "probe"
    admin.delete("batch/v1/jobs", "probe", namespace=ours)


def patch(api: Api, place: str, body: Json, *, resource: str = "batch/v1/jobs") -> tuple[int, str]:
    path = path_of(resource, "probe", namespace=place)
    status, data = api.raw("PATCH", path, body, params={"dryRun": "All"}, content_type=MERGE)
    return status, data.decode()


@pytest.mark.parametrize("to", ["production", "interactive", "batch"])
def test_the_worker_changes_a_jobs_priority(worker: Api, ours: str, job: str, to: str) -> None:
    status, text = patch(worker, ours, {"metadata": {"labels": {PRIORITY: to}}})

    assert status == 200, text


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"suspend": False}},
        {"spec": {"parallelism": 5}},
        {"metadata": {"labels": {"gpu-portal/class": "h100"}}},
        {"metadata": {"labels": {"more": "x"}}},
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}},
        {"metadata": {"annotations": {"gpu-portal/note": "b"}}},
        {"metadata": {"finalizers": ["example.org/stay"]}},
        {"metadata": {"labels": {PRIORITY: "production"}}, "spec": {"backoffLimit": 9}},
    ],
    ids=str,
)
def test_and_nothing_else_of_it(worker: Api, ours: str, job: str, body: Json) -> None:
    status, text = patch(worker, ours, body)

    # What Kubernetes or Kueue refuse by themselves never reaches the policy.
    assert status in (403, 422), text


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"suspend": False}},
        {"metadata": {"labels": {"more": "x"}}},
        {"metadata": {"labels": {"more": ""}}},
        {"spec": {"activeDeadlineSeconds": 9}},
    ],
)
def test_it_is_the_fence_that_refuses_it(worker: Api, ours: str, job: str, body: Json) -> None:
    assert_fenced(patch(worker, ours, body))


def test_no_job_elsewhere_gets_a_priority_by_the_worker(worker: Api, admin: Api, foreign: str) -> None:
    body = manifest("batch/v1/jobs", "probe", foreign)
    admin.create({**body, "spec": {**body["spec"], "suspend": True}})
    try:
        assert_fenced(patch(worker, foreign, {"metadata": {"labels": {PRIORITY: "production"}}}))
    finally:
        admin.delete("batch/v1/jobs", "probe", namespace=foreign)


@DRY_RUN
def test_a_workload_without_a_job_only_in_the_namespace_of_trials(
    worker: Api, admin: Api, ours: str, dry_run: bool
) -> None:
    """In the namespace of a team it would hold the team's quota, and another's run would wait for it."""
    # As the worker makes it: other tests use it at the same time.
    admin.apply(objects.surroundings(DEFAULT)[0])
    resource, name = f"{QUEUES}/workloads", f"probe-{uuid.uuid4().hex[:8]}"
    body = objects.workload(name)
    try:
        assert_fenced(create(worker, resource, _moved(body, ours), ours, dry_run=dry_run))
        assert admin.find(resource, name, namespace=ours) is None

        status, text = create(worker, resource, body, objects.NAMESPACE, dry_run=dry_run)
        assert status == 201, text
        worker.delete(resource, name, namespace=objects.NAMESPACE)
    finally:
        for place in (ours, objects.NAMESPACE):
            admin.delete(resource, name, namespace=place)


def test_a_workload_of_a_team_is_not_deleted_by_the_worker(worker: Api, admin: Api, ours: str) -> None:
    resource, name = f"{QUEUES}/workloads", f"probe-{uuid.uuid4().hex[:8]}"
    admin.create(_moved(objects.workload(name), ours))
    try:
        status, data = worker.raw("DELETE", path_of(resource, name, namespace=ours))
        assert_fenced((status, data.decode()))
    finally:
        admin.delete(resource, name, namespace=ours)


def _moved(body: Json, to: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": to}}
