"""The site profile: what it sets in the objects, and what it says about wrong entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from cluster.manifests import namespace as namespace_manifests
from cluster.manifests import run as manifests
from cluster.manifests import samples
from cluster.manifests.site import DEFAULT, KEYS, site_profile
from tests.cluster.manifests.test_manifests_namespace import SPEC
from tests.cluster.manifests.test_manifests_run import CPU, DRA, NOTEBOOK, OPTIONS
from tests.support.shipped import DEPLOY

Json = dict[str, Any]

# (key, a wrong entry, words of the way out)
WRONG = [
    ("pod-annotations", "openshift.io", "whole names"),
    ("pod-annotations", "*", "whole names"),
    ("pod-annotations", "openshift*", "whole names"),
    ("pod-annotations", "cdi.k8s.io/gpu", "give devices"),
    ("pod-annotations", "k8s.amd.com/*", "give devices"),
    ("user-id", "0", "above 0"),
    ("user-id", "clutser", "above 0"),
    ("user-id", "1000\n1001", "above 0"),
    ("group-id", "-1", "above 0"),
    ("pod-priority-class", "system-node-critical", "not of the system"),
    ("pod-priority-class", "a\nb", "not of the system"),
    ("pull-secrets", "somebody-1-pull", "belong to runs"),
    ("pull-secrets", "*", "names of Secrets"),
    ("pod-labels", "cost-centre", "key=value"),
    ("pod-labels", "kueue.x-k8s.io/queue-name=mine", "cannot be set"),
    ("namespace-labels", "pod-security.kubernetes.io/enforce=privileged", "cannot be set"),
    ("namespace-labels", "app.kubernetes.io/managed-by=me", "cannot be set"),
    ("dns-addresses", "node-local", "IP addresses"),
    ("dns-addresses", "169.254.0.0/16", "IP addresses"),
    ("egress", "10.0.0.0/8 0", "blocks of addresses"),
    ("egress", "10.0.0.0/8 443 80", "blocks of addresses"),
    ("egress", "10.0.0.1/8", "blocks of addresses"),
    ("egress", "example.org", "blocks of addresses"),
    ("egress", "169.254.169.254/32", "cannot be opened"),
    ("egress", "fd00:ec2::254/128", "cannot be opened"),
    ("gpu-node-labels", "pool=gpu", "without values"),
    ("gpu-taints", "node-role.kubernetes.io/control-plane", "cannot be tolerated"),
    ("gpu-taints", "gpu-portal/class", "cannot be tolerated"),
    ("gpu-taints", "*", "without values"),
    ("class-devices", "h100 nvidia.com/gpu=1", "GPUs are not among them"),
    ("class-devices", "h100 rdma/hca", "resource=amount"),
    ("class-devices", "rdma/hca=1", "resource=amount"),
    ("pod-disk", "h100 500Gi", "whole GiB"),
    ("pod-disk", "0", "whole GiB"),
    ("storage-classes", "efs RWX", "ReadWriteOnce or ReadWriteMany"),
]


@pytest.mark.parametrize(("key", "entry", "way_out"), WRONG)
def test_a_wrong_entry_is_named_with_a_way_out_and_its_key_counts_as_not_set(
    key: str, entry: str, way_out: str
) -> None:
    found = site_profile({key: f"# ours\n{entry}\n"})

    (problem,) = found.problems
    assert f"key {key} " in problem.sentence
    assert f"“{entry.replace(chr(10), ' ')}”" in problem.sentence
    assert way_out in problem.way_out
    # What the default opens stays closed.
    assert replace(found, problems=()) == (DEFAULT if key != "egress" else replace(DEFAULT, egress=()))


def test_an_unknown_key_is_named_with_those_that_exist() -> None:
    (problem,) = site_profile({"dns-adresses": "169.254.20.10"}).problems

    assert "dns-adresses" in problem.sentence
    assert "dns-addresses" in problem.way_out


def test_a_wrong_key_leaves_the_others_in_force() -> None:
    found = site_profile({"user-id": "clutser", "group-id": "cluster", "dns-addresses": "169.254.20.10"})

    assert (found.user, found.group, found.dns_addresses) == (1000, None, ("169.254.20.10",))


def test_the_shipped_profile_sets_nothing_and_has_every_key() -> None:
    shipped = yaml.safe_load((DEPLOY / "base" / "site.yaml").read_text())

    assert set(shipped["data"]) == KEYS
    assert site_profile(shipped["data"]) == DEFAULT == site_profile({})


def pod_of(job: Json) -> Json:
    spec: Json = job["spec"]["template"]["spec"]
    return spec


def test_users_groups_priority_and_pull_secrets_of_the_site() -> None:
    site = site_profile(
        {
            "user-id": "cluster",
            "group-id": "2000",
            "pod-priority-class": "batch-low",
            "pull-secrets": "site-registry\ngpu-portal-dockercfg-*",
        }
    )

    for made in (
        pod_of(manifests.job(replace(NOTEBOOK, registry="registry.example.org"), site)),
        samples.sample_objects(NOTEBOOK, site)[samples.POD][0]["spec"],
    ):
        context = made["securityContext"]
        assert "runAsUser" not in context
        assert (context["runAsGroup"], context["fsGroup"], context["runAsNonRoot"]) == (2000, 2000, True)
        assert made["priorityClassName"] == "batch-low"
        assert made["imagePullSecrets"][-1] == {"name": "site-registry"}
    assert [
        one["name"] for one in pod_of(manifests.job(replace(NOTEBOOK, registry="r"), site))["imagePullSecrets"]
    ] == [
        "explore-3-pull",
        "site-registry",
    ]


def test_labels_of_the_site_do_not_replace_ours() -> None:
    site = site_profile({"pod-labels": "cost-centre=42", "namespace-labels": "istio-injection=disabled"})

    job = manifests.job(NOTEBOOK, site)
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels.items() >= {"cost-centre": "42", "gpu-portal/class": "a100"}.items()
    labels = namespace_manifests.namespace(replace(SPEC, site=site))["metadata"]["labels"]
    assert labels.items() >= {"istio-injection": "disabled", "pod-security.kubernetes.io/enforce": "restricted"}.items()


def test_a_dns_cache_of_the_nodes_is_reached_and_nothing_else_there() -> None:
    site = site_profile({"dns-addresses": "169.254.20.10\nfd00::a"})

    egress = namespace_manifests.network_egress(replace(SPEC, site=site))["spec"]["egress"]
    opened = [rule for rule in egress if rule not in namespace_manifests.network_egress(SPEC)["spec"]["egress"]]

    assert opened == [
        {
            "to": [{"ipBlock": {"cidr": "169.254.20.10/32"}}, {"ipBlock": {"cidr": "fd00::a/128"}}],
            "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
        }
    ]


def test_a_class_gets_the_devices_that_the_site_gives_it() -> None:
    site = site_profile({"class-devices": "a100 vpc.amazonaws.com/efa=4\na100 hugepages-2Mi=512Mi\nh100 rdma/hca=1"})

    limits = [
        pod_of(manifests.job(NOTEBOOK, site))["containers"][0]["resources"]["limits"],
        samples.sample_objects(NOTEBOOK, site)[samples.POD][0]["spec"]["containers"][0]["resources"]["limits"],
    ]
    for found in limits:
        assert {name: found[name] for name in found if "/" in name or "huge" in name} == {
            "nvidia.com/gpu": found["nvidia.com/gpu"],
            "vpc.amazonaws.com/efa": "4",
            "hugepages-2Mi": "512Mi",
        }
    assert pod_of(manifests.job(DRA, site))["containers"][0]["resources"]["limits"]["rdma/hca"] == "1"


def test_each_container_of_a_pod_gets_the_disk_space_that_the_site_says() -> None:
    repository = {"repository": "https://example.org/r.git", "clone_into": "r"}
    site = site_profile({"pod-disk": f"50\n{DRA.gpu_class} 500"})
    for spec, size in ((replace(NOTEBOOK, claim="", **repository), "50Gi"), (replace(DRA, claim=""), "500Gi")):
        pod = pod_of(manifests.job(spec, site))
        for container in [*pod["containers"], *pod.get("initContainers", ())]:
            sizes = container["resources"]
            assert sizes["requests"]["ephemeral-storage"] == sizes["limits"]["ephemeral-storage"] == size
        assert pod["volumes"][0] == {"name": "home", "emptyDir": {"sizeLimit": size}}
    (sample,) = samples.sample_objects(NOTEBOOK, site)[samples.POD][:1]
    assert sample["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] == "50Gi"
    assert site_profile({"pod-disk": "h100 500"}).disk_gib("a100") is None


def test_a_run_without_gpus_avoids_nodes_by_the_labels_of_the_site_and_by_name() -> None:
    site = site_profile({"gpu-node-labels": "cloud.google.com/gke-accelerator"})

    affinity = pod_of(manifests.job(CPU, site, gpu_nodes=["b", "a"]))["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    assert {"key": "cloud.google.com/gke-accelerator", "operator": "DoesNotExist"} in term["matchExpressions"]
    assert term["matchExpressions"][-1] == {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["a", "b"]}


def test_containers_without_a_gpu_say_so_and_others_do_not() -> None:
    void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}

    def says_void(pod: Json) -> dict[str, bool]:
        containers = [*pod["containers"], *pod.get("initContainers", [])]
        return {one["name"]: void in one.get("env", []) for one in containers}

    assert says_void(pod_of(manifests.job(OPTIONS))) == {"notebook": False, "clone": True}
    assert says_void(pod_of(manifests.job(DRA))) == {"job": False}
    assert says_void(pod_of(manifests.job(CPU))) == {"job": True}
    for kind, (*_, made) in samples.sample_objects(CPU).items():
        pod = made["spec"] if kind == samples.POD else pod_of(made)
        assert says_void(pod) == {"main": True}
