"""The third admission policy: what people with all rights in a team namespace may create there, and what only others
may. For each refused object, one that differs only in that part passes. Dry runs, so nothing is left behind.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from devcluster.client.kube import Api, path_of
from tests.deploy.fences.pods import template
from tests.deploy.fences.test_fence_worker import SPECS, manifest
from tests.support.cluster.identities import Impersonating, until

Json = dict[str, Any]
FENCE = "gpu-portal fence"
EDITOR, OPERATOR, WORKER, BINDER = "editor", "operator", "worker", "binder"
JOB_CONTROLLER, KCM, CLAIMS, SCHEDULER = "job-controller", "all controllers", "claims", "scheduler"
KUBE_SYSTEM = "system:serviceaccount:kube-system"
RBAC = "rbac.authorization.k8s.io"
QUEUE, CLASS, RUN = "kueue.x-k8s.io/queue-name", "gpu-portal/class", "gpu-portal/run"
MANAGED = "app.kubernetes.io/managed-by"
USERS = {
    EDITOR: "ed@example.org",
    BINDER: f"{KUBE_SYSTEM}:persistent-volume-binder",
    JOB_CONTROLLER: f"{KUBE_SYSTEM}:job-controller",
    "autoscaler": f"{KUBE_SYSTEM}:horizontal-pod-autoscaler",
    "deployments": f"{KUBE_SYSTEM}:deployment-controller",
    "replicas": f"{KUBE_SYSTEM}:replicaset-controller",
    CLAIMS: f"{KUBE_SYSTEM}:resource-claim-controller",
    KCM: "system:kube-controller-manager",
    SCHEDULER: "system:kube-scheduler",
}


@dataclass(frozen=True)
class People:
    place: str
    apis: dict[str, Api]

    def answer(self, who: str, resource: str, body: Json, name: str = "") -> tuple[int, str]:
        """Status and text of a dry run: a creation, or with a name a merge patch."""
        path = path_of(resource, name, namespace=self.place)
        verb, content_type = ("PATCH", "application/merge-patch+json") if name else ("POST", "application/json")
        status, data = self.apis[who].raw(verb, path, body, params={"dryRun": "All"}, content_type=content_type)
        return status, data.decode()

    def refused(self, who: str, resource: str, body: Json, words: str, name: str = "") -> None:
        status, text = self.answer(who, resource, body, name)
        assert (status, FENCE in text, words in text) == (422, True, True), text

    def accepted(self, who: str, resource: str, body: Json, name: str = "") -> None:
        status, text = self.answer(who, resource, body, name)
        assert status == (200 if name else 201), text


@pytest.fixture(scope="module")
def people(services: Json, admin: Api, worker: Api, ours: str) -> People:
    """All of them have all rights in the namespace, as the ClusterRoles of Kubernetes and of a site may give them: the
    policy alone has to refuse.
    """
    config = services["kubeconfigs"]["admin"]
    impersonated: dict[str, Api] = {who: Impersonating(config, user=user) for who, user in USERS.items()}
    meta = {"name": "everything", "namespace": ours}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    admin.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules})
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in USERS.values()]
    ref = {"apiGroup": RBAC, "kind": "Role", "name": "everything"}
    admin.create(
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": ref, "subjects": subjects}
    )
    found = People(ours, impersonated | {OPERATOR: admin, WORKER: worker})
    for who in USERS:
        until(lambda who=who: found.answer(who, "v1/configmaps", config_map())[0] == 201, f"{who} may write here")
    return found


def config_map() -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}


def of(resource: str, labels: Json | None = None, **more: Any) -> Json:
    """One of the small objects of the worker's fence, without the portal's labels."""
    body = manifest(resource, "probe", labels=labels or {})
    return copy.deepcopy({**body, **more})


def job(labels: Json | None = None, pod_labels: Json | None = None, **metadata: Any) -> Json:
    body = of("batch/v1/jobs", {QUEUE: "gpu-portal", CLASS: "a100", **(labels or {})})
    body["metadata"] |= metadata
    body["spec"]["template"]["metadata"]["labels"] |= pod_labels or {}
    return body


def pod(owner: str = "") -> Json:
    found = {"apiVersion": "v1", "kind": "Pod", **template()}
    found["metadata"] = {**found["metadata"], "name": "probe"}
    del found["metadata"]["labels"][MANAGED]
    if owner:
        found["metadata"]["ownerReferences"] = [controlled_by(owner)]
    return found


def controlled_by(kind: str, name: str = "other", uid: str = "1", *, controller: bool = True) -> Json:
    return {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": uid, "controller": controller}


@pytest.fixture(scope="module")
def run(people: People, worker: Api) -> str:
    """A Job of the portal, suspended so that it makes no pod."""
    mine = {MANAGED: "gpu-portal", RUN: "train-1", "gpu-portal/owner": "workloads.workload.5"}
    body = job(mine, {RUN: "train-1"}, name="train-1", namespace=people.place)
    body["spec"]["suspend"] = True
    worker.create(body)
    return "train-1"


def cron_job() -> Json:
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job()["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}


# ---- only what is in the queue -----------------------------------------------------------------------------------

APPS = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
}


def of_pods(resource: str, kind: str) -> Json:
    inner = template()
    inner["metadata"]["labels"] = {"app": "x", **inner["metadata"]["labels"]}
    del inner["metadata"]["labels"][MANAGED]
    inner["spec"]["restartPolicy"] = "Always"
    selector = {"app": "x"} if kind == "ReplicationController" else {"matchLabels": {"app": "x"}}
    body = {"apiVersion": resource.rpartition("/")[0], "kind": kind, "metadata": {"name": "probe"}}
    return body | {"spec": {"selector": selector, "template": inner}}


@pytest.mark.parametrize("owner", ["", "Job"])
def test_a_pod_alone_is_refused(people: People, owner: str) -> None:
    """Also if it says that it belongs to a Job."""
    people.refused(EDITOR, "v1/pods", pod(owner), "a pod alone")


@pytest.mark.parametrize("who", [JOB_CONTROLLER, KCM, OPERATOR])
def test_pods_come_from_controllers_and_operators(people: People, who: str) -> None:
    people.accepted(who, "v1/pods", pod("Job"))


@pytest.mark.parametrize("plural", [*APPS, "replicationcontrollers"])
def test_what_makes_pods_outside_of_the_queue_is_for_operators(people: People, plural: str) -> None:
    resource = f"apps/v1/{plural}" if plural in APPS else f"v1/{plural}"
    body = of_pods(resource, APPS.get(plural, "ReplicationController"))

    people.refused(EDITOR, resource, body, "create a Job")
    people.accepted(OPERATOR, resource, body)


def test_an_operators_deployment_works_and_nobody_else_enlarges_it(people: People, admin: Api) -> None:
    body = of_pods("apps/v1/deployments", "Deployment")
    body["metadata"]["namespace"], body["spec"]["replicas"] = people.place, 0
    admin.create(body)
    try:
        more = {"spec": {"replicas": 5}}
        people.refused(EDITOR, "apps/v1/deployments", more, "create a Job", name="probe")
        path = path_of("apps/v1/deployments", "probe", namespace=people.place, subresource="scale")
        for who, status in ((EDITOR, 422), ("autoscaler", 422), (OPERATOR, 200)):
            answer = people.apis[who].raw(
                "PATCH", path, more, params={"dryRun": "All"}, content_type="application/merge-patch+json"
            )
            assert answer[0] == status, answer
        people.accepted("deployments", "apps/v1/replicasets", of_pods("apps/v1/replicasets", "ReplicaSet"))
        people.accepted("replicas", "v1/pods", pod("ReplicaSet"))
    finally:
        admin.delete("apps/v1/deployments", "probe", namespace=people.place)


@pytest.fixture(scope="module")
def owners(people: People, admin: Api, run: str) -> dict[str, tuple[str, str]]:
    """Name and uid by kind. Kueue's webhook looks them up."""
    cron = admin.create({**cron_job(), "metadata": {"name": "nightly", "namespace": people.place}})
    parent = admin.get("batch/v1/jobs", run, namespace=people.place)
    return {one["kind"]: (one["metadata"]["name"], one["metadata"]["uid"]) for one in (cron, parent)}


def test_a_job_is_queued_and_no_other_job_starts_it(people: People, owners: dict[str, tuple[str, str]]) -> None:
    """Kueue starts a Job together with the admitted Job that controls it."""
    people.accepted(EDITOR, "batch/v1/jobs", job())
    for who in (EDITOR, OPERATOR):
        controlled = job(ownerReferences=[controlled_by("Job", *owners["Job"])])
        people.refused(who, "batch/v1/jobs", controlled, "starts without the queue")
    owned = job(ownerReferences=[controlled_by("Job", *owners["Job"], controller=False)])
    people.accepted(EDITOR, "batch/v1/jobs", owned)
    people.accepted(EDITOR, "batch/v1/jobs", job(ownerReferences=[controlled_by("CronJob", *owners["CronJob"])]))


def test_nothing_controls_a_cron_job(people: People, owners: dict[str, tuple[str, str]]) -> None:
    body = cron_job() | {"metadata": {"name": "probe"}}

    people.accepted(EDITOR, "batch/v1/cronjobs", body)
    body["metadata"]["ownerReferences"] = [controlled_by("Job", *owners["Job"])]
    people.refused(EDITOR, "batch/v1/cronjobs", body, "starts without the queue")


def test_an_existing_job_gets_no_other_owner(people: People, admin: Api, owners: dict[str, tuple[str, str]]) -> None:
    body = job(namespace=people.place)
    body["spec"]["suspend"] = True
    admin.create(body)
    try:
        by_cron = {"metadata": {"ownerReferences": [controlled_by("CronJob", *owners["CronJob"])]}}
        people.accepted(EDITOR, "batch/v1/jobs", by_cron, name="probe")
        by_job = {"metadata": {"ownerReferences": [controlled_by("Job", *owners["Job"])]}}
        people.refused(EDITOR, "batch/v1/jobs", by_job, "starts without the queue", name="probe")
    finally:
        admin.delete("batch/v1/jobs", "probe", namespace=people.place)


# ---- services and volumes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [EDITOR, WORKER, OPERATOR])
@pytest.mark.parametrize(
    "spec",
    [
        {"ports": [{"port": 80}]},
        {"ports": [{"port": 80}], "type": "NodePort"},
        {"ports": [{"port": 80}], "type": "LoadBalancer"},
        {"type": "ExternalName", "externalName": "example.org"},
        {"ports": [{"port": 80}], "clusterIP": "None", "externalIPs": ["192.0.2.1"]},
    ],
    ids=["cluster address", "node port", "load balancer", "external name", "external address"],
)
def test_a_service_is_headless(people: People, spec: Json, who: str) -> None:
    status, text = people.answer(who, "v1/services", of("v1/services", spec=spec))

    # Of some the quota of the object count says it first.
    assert status in (403, 422), text
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        assert (FENCE in text, "headless" in text) == (True, True), text
    headless = {"ports": [{"port": 80}], "clusterIP": "None"}
    people.accepted(who, "v1/services", of("v1/services", spec=headless))


def test_a_headless_service_stays_so(people: People, admin: Api) -> None:
    spec = {"ports": [{"port": 80}], "clusterIP": "None"}
    admin.create(of("v1/services", spec=spec) | {"metadata": {"name": "probe", "namespace": people.place}})
    try:
        people.refused(EDITOR, "v1/services", {"spec": {"externalIPs": ["192.0.2.1"]}}, "headless", name="probe")
        people.accepted(EDITOR, "v1/services", {"spec": {"ports": [{"port": 81}]}}, name="probe")
    finally:
        admin.delete("v1/services", "probe", namespace=people.place)


CLAIM = "v1/persistentvolumeclaims"


@pytest.mark.parametrize("who", [EDITOR, WORKER])
def test_a_claim_names_no_volume(people: People, who: str) -> None:
    spec = SPECS[CLAIM]["spec"]

    people.accepted(who, CLAIM, of(CLAIM))
    people.refused(who, CLAIM, of(CLAIM, spec={**spec, "volumeName": "of-another-team"}), "volumeName")
    people.accepted(OPERATOR, CLAIM, of(CLAIM, spec={**spec, "volumeName": "of-another-team"}))


def test_an_existing_claim_is_bound_by_kubernetes_only(people: People, admin: Api) -> None:
    body = of(CLAIM, spec={**SPECS[CLAIM]["spec"], "storageClassName": "nobody-provides-this"})
    admin.create({**body, "metadata": {"name": "probe", "namespace": people.place}})
    try:
        bound = {"spec": {"volumeName": "of-another-team"}}
        people.refused(EDITOR, CLAIM, bound, "volumeName", name="probe")
        people.accepted(BINDER, CLAIM, bound, name="probe")
        people.accepted(EDITOR, CLAIM, {"metadata": {"labels": {"a": "b"}}}, name="probe")
    finally:
        admin.delete(CLAIM, "probe", namespace=people.place)


# ---- whose object it is ------------------------------------------------------------------------------------------

OWN = [RUN, "gpu-portal/owner", "gpu-portal/workload", "gpu-portal/kind", "gpu-portal/of-a-later-version"]


@pytest.mark.parametrize("label", OWN)
@pytest.mark.parametrize("place", ["job", "pods of the job", "claim"])
def test_nobody_passes_off_an_object_as_the_portals(people: People, label: str, place: str) -> None:
    def body(labels: Json) -> tuple[str, Json]:
        if place == "claim":
            return CLAIM, of(CLAIM, labels)
        return "batch/v1/jobs", job(labels) if place == "job" else job(pod_labels=labels)

    people.refused(EDITOR, *body({label: "theirs-1"}), "mark objects of the portal")
    people.accepted(EDITOR, *body({label.replace("gpu-portal/", "example.org/"): "theirs-1"}))
    people.accepted(WORKER, *body({label: "theirs-1"}))


def test_other_managers_may_say_so(people: People) -> None:
    people.refused(EDITOR, CLAIM, of(CLAIM, {MANAGED: "gpu-portal"}), "mark objects of the portal")
    people.accepted(EDITOR, CLAIM, of(CLAIM, {MANAGED: "Helm"}))


@pytest.mark.parametrize("label", [RUN, "gpu-portal/owner", CLASS, MANAGED, "gpu-portal/new", QUEUE])
@pytest.mark.parametrize("value", ["other", None])
def test_a_runs_labels_stay(people: People, run: str, label: str, value: str | None) -> None:
    status, text = people.answer(EDITOR, "batch/v1/jobs", {"metadata": {"labels": {label: value}}}, name=run)
    if label == "gpu-portal/new" and value is None:
        assert status == 200, text
        return
    # Queue and class are also rules of the fence of pods, and the API server names one of the refusals.
    assert (status in (403, 422), label == QUEUE or FENCE in text) == (True, True), text
    people.accepted(EDITOR, "batch/v1/jobs", {"metadata": {"labels": {"example.org/note": value}}}, name=run)


def test_the_labels_of_a_runs_pods_stay(people: People, run: str) -> None:
    def pods(labels: Json) -> Json:
        return {"spec": {"template": {"metadata": {"labels": labels}}}}

    people.refused(EDITOR, "batch/v1/jobs", pods({RUN: "other-1"}), "may be changed only", name=run)
    people.refused(EDITOR, "batch/v1/jobs", pods({RUN: None}), "may be changed only", name=run)
    people.accepted(EDITOR, "batch/v1/jobs", pods({"kueue.x-k8s.io/podset": "main"}), name=run)
    people.accepted(OPERATOR, "batch/v1/jobs", pods({"gpu-portal/new": "x"}), name=run)


# ---- quota and devices of a class --------------------------------------------------------------------------------

LOCAL_QUEUE = "kueue.x-k8s.io/v1beta2/localqueues"


@pytest.mark.parametrize("who", [EDITOR, WORKER])
def test_a_queue_of_the_namespace_leads_to_its_own_quota(people: People, who: str) -> None:
    people.refused(who, LOCAL_QUEUE, of(LOCAL_QUEUE, spec={"clusterQueue": "team-b"}), "clusterQueue")
    people.accepted(who, LOCAL_QUEUE, of(LOCAL_QUEUE, spec={"clusterQueue": people.place}))


TEMPLATES, DEVICE_CLAIMS = "resource.k8s.io/v1/resourceclaimtemplates", "resource.k8s.io/v1/resourceclaims"


def test_only_the_portal_says_which_devices_a_claim_gets(people: People) -> None:
    people.refused(EDITOR, TEMPLATES, of(TEMPLATES), "ResourceClaimTemplates")
    for who in (WORKER, OPERATOR):
        people.accepted(who, TEMPLATES, of(TEMPLATES))
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "probe"}}
    claim["spec"] = SPECS[TEMPLATES]["spec"]["spec"]
    people.refused(EDITOR, DEVICE_CLAIMS, claim, "a ResourceClaim alone")
    for who in (CLAIMS, KCM, SCHEDULER, OPERATOR):
        people.accepted(who, DEVICE_CLAIMS, claim)


def test_a_job_takes_devices_by_its_own_template(people: People) -> None:
    def claiming(template_name: str, run: str) -> Json:
        body = job(pod_labels={RUN: run} if run else {})
        body["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": template_name}]
        return body

    for who, run in ((EDITOR, ""), (WORKER, "train-1"), (WORKER, "")):
        people.refused(who, "batch/v1/jobs", claiming("other-1", run), "of its own run")
    people.accepted(WORKER, "batch/v1/jobs", claiming("train-1", "train-1"))
    people.accepted(OPERATOR, "batch/v1/jobs", claiming("other-1", ""))


def test_other_namespaces_are_left_alone(admin: Api, foreign: str) -> None:
    for resource, body in (("v1/pods", pod()), ("v1/services", of("v1/services", spec={"ports": [{"port": 80}]}))):
        status, data = admin.raw("POST", path_of(resource, namespace=foreign), body, params={"dryRun": "All"})
        assert status == 201, data
