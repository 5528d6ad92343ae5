"""`manage.py doctor --preflight` without the portal: nothing on a good cluster, each planted obstacle alone.

Obstacles are real objects. Versions, which cannot be changed here, are replaced in what was read.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from cluster.client.kube import Kube
from desk.health.preflight import admission, existing, kueue, reader, report
from desk.health.preflight.types import ClusterFacts, Level
from devcluster.client.kube import Api
from devcluster.services.stack import Stack
from tests.desk.health.preflight.conftest import GOOD, KUEUE_SETTINGS, dns_service, path_of_object, workload
from tests.desk.health.preflight.obstacles import OBSTACLES, OURS, cluster_object, storage_class
from tests.support.shipped import DEPLOY, documents
from tests.support.waiting import wait_until

Json = dict[str, Any]
FAIL, WARN = Level.FAIL, Level.WARN


def doctor(*arguments: str) -> tuple[int, str]:
    told = StringIO()
    try:
        call_command("doctor", *arguments, stdout=told, stderr=told)
    except SystemExit as end:
        return int(end.code or 0), told.getvalue()
    return 0, told.getvalue()


def read(api: Api) -> ClusterFacts:
    return reader.read_cluster(Kube(str(api.kubeconfig)), namespace="default")


def obstacles(facts: ClusterFacts) -> set[tuple[str, Level]]:
    return {(one.check, one.level) for one in report.findings(facts) if one.level is not Level.PASS}


@contextmanager
def planted(api: Api, *objects: Json) -> Iterator[None]:
    """Objects that are part of the good cluster are put back, the others deleted."""
    try:
        for one in objects:
            api.apply(one)
        yield
    finally:
        for one in reversed(objects):
            path = path_of_object(api, one)
            if good := next((kept for kept in GOOD if path_of_object(api, kept) == path), None):
                api.apply(good)
            else:
                api.raw("DELETE", path)
        wait_until(lambda: not obstacles(read(api)), what="the cluster is good again")


@pytest.fixture(scope="module")
def good(cluster_admin: Api) -> ClusterFacts:
    return read(cluster_admin)


def test_nothing_is_found_on_a_good_cluster(cluster_admin: Api) -> None:
    code, told = doctor("--preflight", str(cluster_admin.kubeconfig))

    assert code == 0, told
    assert not re.search("^(WARN|FAIL)", told, re.MULTILINE), told
    assert told.rstrip().endswith("The portal can be installed: no failures, 0 warnings.")
    assert len(re.findall("^pass", told, re.MULTILINE)) >= 15


@pytest.mark.parametrize("name", OBSTACLES)
def test_each_planted_obstacle_is_found_and_nothing_else(cluster_admin: Api, name: str) -> None:
    one = OBSTACLES[name]

    with planted(cluster_admin, *one.objects):
        # Policies and webhooks are in force some time after they were created.
        facts = wait_until(lambda: found if obstacles(found := read(cluster_admin)) else None, what=one.check)
        [line] = [line for line in report.findings(facts) if line.level is not Level.PASS]

    assert (line.check, line.level) == (one.check, one.level), line
    assert one.said in line.sentence
    assert line.do


# ---- obstacles that are the absence of something, or cannot be planted here ------------------------------------------


def without(facts: ClusterFacts, plural: str, *names: str) -> ClusterFacts:
    kept = tuple(one for one in facts.all(plural) if one["metadata"]["name"] not in names)
    return replace(facts, lists={**facts.lists, plural: kept})


def adding(facts: ClusterFacts, plural: str, *more: Json) -> ClusterFacts:
    return replace(facts, lists={**facts.lists, plural: (*facts.all(plural), *more)})


def test_an_old_kubernetes(good: ClusterFacts) -> None:
    assert obstacles(replace(good, version="v1.33.4")) == {("kubernetes", FAIL)}
    assert obstacles(replace(good, version="v1.34.0-gke.1")) == set()
    assert obstacles(replace(good, version="dev")) == {("kubernetes", WARN)}


@pytest.mark.parametrize(
    ("group", "versions", "expected"),
    [
        ("kueue.x-k8s.io", (), ("kueue-api", FAIL)),
        ("kueue.x-k8s.io", ("v1beta1",), ("kueue-api", FAIL)),
        ("resource.k8s.io", ("v1beta1",), ("kubernetes-devices", FAIL)),
    ],
)
def test_an_api_that_is_not_served(
    good: ClusterFacts, group: str, versions: tuple[str, ...], expected: tuple[str, Level]
) -> None:
    assert obstacles(replace(good, groups={**good.groups, group: versions})) == {expected}


def test_no_visibility_api(good: ClusterFacts) -> None:
    groups = {name: versions for name, versions in good.groups.items() if name != kueue.VISIBILITY}
    assert obstacles(replace(good, groups=groups)) == {("kueue-visibility", WARN)}


def test_a_kueue_that_cannot_be_seen(good: ClusterFacts) -> None:
    unseen = replace(without(good, "deployments", "kueue-controller-manager"), kueue_settings=None)
    assert obstacles(unseen) == {("kueue-version", WARN), ("kueue-settings", WARN)}

    [found] = good.all("deployments")
    down = {**found, "status": {}}
    assert obstacles(adding(without(good, "deployments", "kueue-controller-manager"), "deployments", down)) == {
        ("kueue-running", FAIL)
    }


def kueue_container(good: ClusterFacts, **changes: Any) -> ClusterFacts:
    [found] = good.all("deployments")
    changed = copy.deepcopy(found)
    changed["spec"]["template"]["spec"]["containers"][0] |= changes
    return adding(without(good, "deployments", "kueue-controller-manager"), "deployments", changed)


def test_the_container_of_kueue(good: ClusterFacts) -> None:
    by_digest = "registry.k8s.io/kueue/kueue@sha256:1234"
    assert obstacles(kueue_container(good, image=by_digest)) == {("kueue-version", WARN)}
    mirrored = "registry.example.org:5000/kueue:v0.19.0@sha256:1234"
    assert obstacles(kueue_container(good, image=mirrored)) == set()
    gates = ["--feature-gates=LocalQueueMetrics=true,TopologyAwareScheduling=false"]
    assert obstacles(kueue_container(good, args=gates)) == {("kueue-topology", FAIL)}


@pytest.mark.parametrize("settings", ["- a list", "a: b: c", ""])
def test_settings_that_cannot_be_parsed(good: ClusterFacts, settings: str) -> None:
    assert obstacles(replace(good, kueue_settings=settings)) == {("kueue-settings", FAIL)}


def test_wait_for_pods_ready_of_an_old_file(good: ClusterFacts) -> None:
    """In v1beta1 the section alone does not turn it on."""
    settings = yaml.safe_load(KUEUE_SETTINGS) | {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "waitForPodsReady": {}}
    assert obstacles(replace(good, kueue_settings=yaml.safe_dump(settings))) == set()


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {"a": "1"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({}, {}, True),
    ],
)
def test_selectors_of_namespaces(selector: Json, labels: dict[str, str], expected: bool) -> None:
    assert kueue.selects(selector, labels) is expected


def test_jobs_without_a_queue_outside_of_the_portals_namespace(good: ClusterFacts) -> None:
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "gpu-portal"]}
    settings = yaml.safe_load(KUEUE_SETTINGS) | {
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [excluded]},
    }
    assert obstacles(replace(good, kueue_settings=yaml.safe_dump(settings))) == set()


def test_no_dns(good: ClusterFacts) -> None:
    assert obstacles(without(good, "services", "kube-dns")) == {("dns", FAIL)}
    elsewhere = adding(without(good, "services", "kube-dns"), "services", dns_service("openshift-dns"))
    assert obstacles(elsewhere) == {("dns", WARN)}


def daemon_set(name: str, *arguments: str) -> Json:
    found = workload("DaemonSet", name, "kube-system", "x:1")
    found["spec"]["template"]["spec"]["containers"][0]["args"] = [*arguments]
    return found


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([], {("network-policies", WARN)}),
        ([daemon_set("kube-flannel-ds")], {("network-policies", FAIL)}),
        ([daemon_set("aws-node")], {("network-policies", FAIL)}),
        ([daemon_set("aws-node", "--enable-network-policy=true")], set()),
        ([daemon_set("cilium")], set()),
        ([daemon_set("kube-flannel-ds"), daemon_set("canal")], set()),
    ],
)
def test_plugins_that_enforce_network_policies(
    good: ClusterFacts, plugins: list[Json], expected: set[tuple[str, Level]]
) -> None:
    """An unknown plugin is said to be unknown."""
    facts = adding(without(good, "daemonsets", "calico-node"), "daemonsets", *plugins)
    assert obstacles(facts) == expected
    if not plugins:
        assert "Unknown: " in next(one.sentence for one in report.findings(facts) if one.level is WARN)


def test_k3s_enforces_network_policies_itself(good: ClusterFacts) -> None:
    server = {"metadata": {"name": "k3s"}, "status": {"nodeInfo": {"kubeletVersion": "v1.36.1+k3s1"}}}
    assert obstacles(adding(without(good, "daemonsets", "calico-node"), "nodes", server)) == set()


def test_no_default_storage_class(good: ClusterFacts) -> None:
    assert obstacles(without(good, "storageclasses", "standard")) == {("storage", FAIL)}
    plain = adding(without(good, "storageclasses", "standard"), "storageclasses", storage_class("x", is_default=False))
    assert obstacles(plain) == {("storage", FAIL)}


def test_no_gpus(good: ClusterFacts) -> None:
    plain = {"metadata": {"name": "plain", "labels": {}}, "status": {"allocatable": {"cpu": "8"}, "nodeInfo": {}}}
    found = replace(good, lists={**good.lists, "nodes": (plain,), "resourceslices": ()})
    assert obstacles(found) == {("gpu-devices", WARN)}


def test_the_portals_own_namespace(good: ClusterFacts) -> None:
    """It may exist before the installation, but not with the label of teams; namespaces of teams have an owner."""
    own = cluster_object("v1", "Namespace", "gpu-portal")
    assert obstacles(adding(good, "namespaces", own)) == set()
    marked = cluster_object("v1", "Namespace", "gpu-portal", metadata={"labels": OURS})
    assert obstacles(adding(good, "namespaces", marked)) == {("names", FAIL)}
    owned = {"labels": OURS | {"gpu-portal/owner": "tenants.namespace.1"}}
    assert obstacles(adding(good, "namespaces", cluster_object("v1", "Namespace", "vision", metadata=owned))) == set()


def test_gpus_that_no_label_describes(good: ClusterFacts) -> None:
    bare = {
        "metadata": {"name": "bare", "labels": {}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "nodeInfo": {}},
    }
    assert obstacles(adding(good, "nodes", bare)) == {("gpu-labels", WARN)}


def test_a_gpu_operator_that_is_half_installed(good: ClusterFacts) -> None:
    half = daemon_set("nvidia-driver-daemonset") | {"status": {"desiredNumberScheduled": 4, "numberReady": 1}}
    assert obstacles(adding(good, "daemonsets", half)) == {("gpu-operator", WARN)}
    policy = {"metadata": {"name": "cluster-policy"}, "status": {"state": "notReady"}}
    assert obstacles(adding(good, "clusterpolicies", policy)) == {("gpu-operator", WARN)}


# ---- identity and output ---------------------------------------------------------------------------------------------


def test_a_kubeconfig_with_few_rights(stack: Stack, cluster_admin: Api, tmp_path: Path) -> None:
    """Like that of a developer: what it may not do is listed, and nothing is concluded from what it may not read."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "developer", "namespace": "default"}}
    with planted(cluster_admin, account):
        path = "/api/v1/namespaces/default/serviceaccounts/developer/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = cluster_admin.request("POST", path, body)["status"]["token"]
        config = yaml.safe_load(Path(cluster_admin.kubeconfig).read_text())
        config["users"][0]["user"] = {"token": token}
        (tmp_path / "developer").write_text(yaml.safe_dump(config))
        code, told = doctor("--preflight", str(tmp_path / "developer"), "--json")

    lines = json.loads(told)["findings"]
    levels = {(line["check"], line["level"]) for line in lines}
    assert code == 1
    assert ("rights", "fail") in levels
    assert levels >= {("unread", "warn"), ("admission", "warn")}
    assert not {check for check, _level in levels} & {"dns", "network-policies", "storage", "gpu-devices", "names"}
    [rights] = [line for line in lines if line["check"] == "rights"]
    assert "create and patch clusterroles" in rights["sentence"]
    assert "escalate clusterroles" in rights["sentence"]
    assert all(line["do"] for line in lines if line["level"] != "pass")


def test_the_rights_of_an_installation_are_those_of_what_is_shipped(cluster_admin: Api) -> None:
    """Every kind in deploy/ is asked for, in the right place."""
    asked = {(group, resource) for group, resources in reader.CLUSTER_WIDE.items() for resource in resources}
    asked |= {(group, resource) for group, resources in reader.IN_NAMESPACE.items() for resource in resources}
    for one in documents(DEPLOY):
        version = one["apiVersion"]
        known = cluster_admin._kinds(version)[one["kind"]]
        group = version.partition("/")[0] if "/" in version else ""
        assert (group, known["name"]) in asked
        in_namespace = known["name"] in reader.IN_NAMESPACE.get(group, ())
        assert in_namespace is known["namespaced"], one["kind"]


def test_values_of_shipped_objects_are_those_that_are_compared(good: ClusterFacts) -> None:
    expected = {(plural, name) for plural, named in existing.SHIPPED.items() for name in named}
    plurals = {"PriorityClass": "priorityclasses", "WorkloadPriorityClass": "workloadpriorityclasses",
               "Topology": "topologies", "ResourceFlavor": "resourceflavors"}  # fmt: skip
    shipped = [one for one in documents(DEPLOY / "base") if one["kind"] in plurals]
    assert {(plurals[one["kind"]], one["metadata"]["name"]) for one in shipped} == expected
    for one in shipped:
        fields = existing.SHIPPED[plurals[one["kind"]]][one["metadata"]["name"]]
        assert {key: one.get(key, {}) for key in fields} == fields


def test_the_fence_allows_the_same_annotations() -> None:
    [fence] = [
        one
        for one in documents(DEPLOY / "base")
        if one["metadata"]["name"] == "gpu-portal-pods" and "paramKind" in one["spec"]
    ]
    [pattern] = [v["expression"] for v in fence["spec"]["variables"] if v["name"] == "allowedAnnotations"]
    body = pattern.strip().strip("'").removeprefix("^(").removesuffix(")$").replace("\\\\", "")
    assert {one.replace(".+", "") for one in body.split("|")} == {*admission.ALLOWED_ANNOTATIONS}


def test_json_has_every_line(cluster_admin: Api, good: ClusterFacts) -> None:
    code, told = doctor("--preflight", str(cluster_admin.kubeconfig), "--json")
    answer = json.loads(told)
    assert (code, answer["possible"]) == (0, True)
    assert {line["check"] for line in answer["findings"]} == {one.check for one in report.findings(good)}
    assert {*answer["findings"][0]} == {"check", "level", "sentence", "do"}


def test_no_database_is_asked(cluster_admin: Api) -> None:
    """pytest-django refuses every query of a test without the mark django_db."""
    assert doctor("--preflight", str(cluster_admin.kubeconfig))[0] == 0


def test_a_cluster_that_does_not_answer(cluster_admin: Api, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(cluster_admin.kubeconfig).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "gone").write_text(yaml.safe_dump(config))
    code, told = doctor("--preflight", str(tmp_path / "gone"))
    assert (code, told.splitlines()[0].partition(":")[0]) == (2, "The cluster does not answer")

    with pytest.raises(CommandError, match="cannot be read: No such file"):
        doctor("--preflight", str(tmp_path / "absent"))
    with pytest.raises(CommandError, match="--json needs"):
        doctor("--json")


@pytest.mark.parametrize("text", ["", "[", "text", "{}", "clusters: 1"])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(CommandError, match=r"is no kubeconfig \(\w+\)\. Try it: kubectl"):
        call_command("doctor", preflight=tmp_path / "config")
