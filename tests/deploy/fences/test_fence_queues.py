"""The first admission policy: to which queue objects of others the worker's own may refer, by their names, and which
labels it may set on its namespaces. For each refused object, one that differs only in that part passes.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.manifests import names, pool
from cluster.manifests import namespace as manifests
from cluster.manifests.specs import CohortSpec, FlavorSpec, NamespaceSpec, QuotaCell, QuotaSpec
from devcluster.client.kube import MERGE, Api, path_of
from tests.deploy.fences.site_copies import ADMISSION, config_map
from tests.deploy.fences.test_fence_worker import FENCE, OURS, QUEUES, assert_fenced, create, queue_object
from tests.support.cluster.identities import Impersonating, namespace, until
from tests.support.cluster.removal import remove_namespace
from tests.support.shipped import DEPLOY

Json = dict[str, Any]
NAME = f"gpu-portal-{uuid.uuid4().hex[:8]}"
FLAVORS = "a100-5e6f7a8b"


def of(plural: str, name: str = NAME, **spec: Any) -> Json:
    body = queue_object(plural, name)
    return {**body, "spec": {**body["spec"], **spec}}


def quota(flavor: str) -> list[Json]:
    amounts = [{"name": "nvidia.com/gpu", "nominalQuota": "1"}]
    return [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": flavor, "resources": amounts}]}]


def selecting(**labels: str) -> Json:
    return {"matchLabels": {"kubernetes.io/metadata.name": NAME, **labels}}


EXPRESSION = {"key": "team", "operator": "Exists"}
# (the refused object, similar ones that pass)
CASES: dict[str, tuple[Json, list[Json]]] = {
    "somebody's cohort": (of("cohorts", "research"), [of("cohorts", "gpu-portal-2"), of("cohorts", "gpu-portal")]),
    "a look-alike of our cohort": (of("cohorts", "gpu-portals"), [of("cohorts", names.own_cohort("team-a"))]),
    "below somebody's cohort": (of("cohorts", parentName="research"), [of("cohorts", parentName="gpu-portal")]),
    "a queue in somebody's cohort": (
        of("clusterqueues", cohortName="research"),
        # Without a cohort, a queue borrows from nobody.
        [of("clusterqueues", cohortName=one) for one in ("gpu-portal", names.own_cohort(NAME), None)],
    ),
    "a queue of somebody's flavor": (
        of("clusterqueues", resourceGroups=quota("default-flavor")),
        [of("clusterqueues", resourceGroups=quota(one)) for one in (FLAVORS, names.PLAIN_FLAVOR)],
    ),
    "a cohort of somebody's flavor": (
        of("cohorts", resourceGroups=quota("spot")),
        [of("cohorts", resourceGroups=quota(FLAVORS))],
    ),
    "a queue for all namespaces": (of("clusterqueues", namespaceSelector={}), [of("clusterqueues")]),
    "a queue for another namespace": (
        of("clusterqueues", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "team-b"}}),
        [of("clusterqueues", namespaceSelector=selecting())],
    ),
    "a queue for more than its namespace": (
        of("clusterqueues", namespaceSelector=selecting() | {"matchExpressions": [EXPRESSION]}),
        [of("clusterqueues", namespaceSelector=selecting())],
    ),
    "a flavor with somebody's name": (of("resourceflavors", "default-flavor"), [of("resourceflavors", FLAVORS)]),
    "a flavor for every pod": (of("resourceflavors", nodeTaints=[]), [of("resourceflavors")]),
    "a flavor with somebody's topology": (
        of("resourceflavors", topologyName="racks", nodeLabels={"a": "b"}),
        [
            of("resourceflavors", topologyName="gpu-portal", nodeLabels={"a": "b"}),
            of("resourceflavors", "racks-00112233", topologyName="gpu-portal-racks", nodeLabels={"a": "b"}),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_queue_objects_refer_to_ours_only(worker: Api, case: str) -> None:
    refused, admitted = CASES[case]
    resource = f"{QUEUES}/{refused['kind'].lower()}s"

    assert_fenced(create(worker, resource, refused))
    for body in admitted:
        status, text = create(worker, resource, body)
        assert status in (201, 409), text  # 409: the installation has it


def test_what_the_portal_makes_refers_to_ours_only(worker: Api) -> None:
    cell = QuotaCell("nvidia.com/gpu", names.flavor_name("a100", {"a": "b"}), 1, 0)
    quotas = QuotaSpec(devices={}, cpu=1, memory_gib=1)
    spec = NamespaceSpec(
        name=f"queues-{NAME[-8:]}", owner="o", group="g", cohort=NAME, quota=quotas, cells=(cell,), is_held=False,
        grace=(cell,),
    )  # fmt: skip
    flavor = FlavorSpec(
        cell.flavor, owner="o", slug="a100", node_labels={"a": "b"}, tolerations=(), topology="gpu-portal-racks"
    )
    bodies = [
        pool.resource_flavor(flavor),
        pool.cohort(CohortSpec(NAME, owner="o", cells=(QuotaCell(cell.resource, cell.flavor, 1),))),
        *manifests.grace_cohort(spec),
        manifests.cluster_queue(spec, (cell,)),
    ]

    for body in bodies:
        status, text = create(worker, f"{QUEUES}/{body['kind'].lower()}s", body)
        assert status == 201, text


def test_an_older_cohort_with_another_name_can_be_deleted(worker: Api, admin: Api) -> None:
    admin.create(of("cohorts", f"older-{NAME}"))

    assert create(worker, f"{QUEUES}/cohorts", of("cohorts", f"older-{NAME}"))[0] == 422
    worker.delete(f"{QUEUES}/cohorts", f"older-{NAME}")


# ---- labels of namespaces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label", ["gpu-portal/trusted", "istio-injection", "kubernetes.io/team", "kueue.x-k8s.io/managed-namespace"]
)
def test_the_worker_sets_no_other_label(worker: Api, ours: str, label: str) -> None:
    assert_fenced(create(worker, "v1/namespaces", namespace(NAME, **{label: "x"})))
    assert_fenced(patched(worker, ours, {label: "x"}))
    for own in ({"gpu-portal/owner": "tenants.namespace.5"}, {"pod-security.kubernetes.io/warn": "restricted"}):
        status, text = create(worker, "v1/namespaces", namespace(NAME, **own))
        assert status == 201, text


def patched(api: Api, name: str, labels: Json) -> tuple[int, str]:
    body = {"metadata": {"labels": labels}}
    status, data = api.raw("PATCH", path_of("v1/namespaces", name), body, params={"dryRun": "All"}, content_type=MERGE)
    return status, data.decode()


def test_labels_of_others_stay_or_go_and_are_not_changed(worker: Api, admin: Api, ours: str) -> None:
    admin.patch("v1/namespaces", ours, {"metadata": {"labels": {"backup": "daily"}}})
    try:
        assert patched(worker, ours, {"gpu-portal/owner": "tenants.namespace.5"})[0] == 200
        assert patched(worker, ours, {"backup": None})[0] == 200
        assert_fenced(patched(worker, ours, {"backup": "never"}))
    finally:
        admin.patch("v1/namespaces", ours, {"metadata": {"labels": {"backup": None}}})


@pytest.fixture(scope="module")
def site(services: Json, admin: Api) -> Iterator[tuple[Api, str]]:
    """Another account, to which a copy of the policy applies, and the namespace with the site profile of that copy."""
    name = f"fence-labels-{uuid.uuid4().hex[:8]}"
    account = Impersonating(services["kubeconfigs"]["admin"], user=name, group="system:masters")
    documents = yaml.safe_load_all((DEPLOY / "base" / "fence-worker.yaml").read_text())
    policy, binding = (copy.deepcopy(one) for one in documents if one["metadata"]["name"] == "gpu-portal-worker-labels")
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    # Only namespaces that name it: the absence of a profile stops every creator.
    assert policy["spec"]["matchConstraints"]["objectSelector"] == {"matchLabels": OURS}
    policy["spec"]["matchConstraints"]["objectSelector"] = {"matchLabels": {"gpu-portal/owner": name}}
    [condition] = policy["spec"]["matchConditions"]
    condition["expression"] = f"request.userInfo.username == '{name}'"
    binding["spec"]["paramRef"]["namespace"] = name
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        admin.create(config_map(name, {}))
        admin.create(policy)
        admin.create(binding)
        wrong = namespace(NAME, **{"gpu-portal/owner": name, "a": "b"})
        until(lambda: FENCE in create(account, "v1/namespaces", wrong)[1], "the copy is in force")
        yield account, name
    finally:
        admin.delete(f"{ADMISSION}/validatingadmissionpolicybindings", name)
        admin.delete(f"{ADMISSION}/validatingadmissionpolicies", name)
        remove_namespace(admin, admin.get("v1/namespaces", name))


def test_without_a_profile_only_namespaces_of_the_portal_stop(admin: Api, site: tuple[Api, str]) -> None:
    _account, place = site
    admin.delete("v1/configmaps", "site", namespace=place)
    ours = namespace(NAME, **{"gpu-portal/owner": place})
    until(lambda: "no params found" in create(admin, "v1/namespaces", ours)[1], "the policy misses its profile")

    assert create(admin, "v1/namespaces", {**ours, "metadata": {"name": NAME}})[0] == 201
    admin.create(config_map(place, {}))
    until(lambda: create(admin, "v1/namespaces", ours)[0] == 201, "the policy reads the new profile")


def test_the_site_profile_adds_labels_with_their_values(admin: Api, site: tuple[Api, str]) -> None:
    account, place = site
    never = {"kueue.x-k8s.io/managed-namespace": "false", "gpu-portal/trusted": "x"}
    lines = ["# ours", "istio-injection=disabled", "", "mark=x", *(f"{key}={value}" for key, value in never.items())]

    def answer(**labels: str) -> tuple[int, str]:
        return create(account, "v1/namespaces", namespace(NAME, **{"gpu-portal/owner": place}, **labels))

    assert_fenced(answer(**{"istio-injection": "disabled"}))
    admin.apply(config_map(place, {"namespace-labels": "\n".join(lines)}))
    until(lambda: answer(mark="x")[0] == 201, "the policy reads the new profile")

    assert answer(**{"istio-injection": "disabled"})[0] == 201
    assert_fenced(answer(**{"istio-injection": "enabled"}))
    for key, value in never.items():
        assert_fenced(answer(**{key: value}))
