"""Each preset of deploy/sites on the API server, with what a cluster of that kind does to pods.

A policy that changes pods stands for the cluster's webhooks. It and the fence are in force in one namespace only.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from cluster.manifests import run as manifests
from cluster.manifests.namespace import network_egress
from cluster.manifests.site import KEYS, SiteProfile, site_profile
from devcluster.client.kube import Api
from tests.cluster.manifests.test_manifests_namespace import SPEC
from tests.cluster.manifests.test_manifests_run import CPU, NOTEBOOK
from tests.deploy.fences.site_copies import SiteCopy, config_map, site_copy
from tests.support.cluster.identities import until
from tests.support.cluster.policies import PODS, changes
from tests.support.shipped import DEPLOY, documents

Json = dict[str, Any]
# What the cluster writes into a pod, as the fields of an apply configuration.
WEBHOOKS = {
    "eks": """Object{metadata: Object.metadata{annotations: {
        "cloudwatch.aws.amazon.com/auto-annotate-python": "true",
        "instrumentation.opentelemetry.io/inject-python": "true"}}}""",
    "gke": """Object{metadata: Object.metadata{annotations: {
        "autopilot.gke.io/resource-adjustment": "{}", "autopilot.gke.io/warden-version": "3.0"}}}""",
    "aks": """[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{
        key: "sku", operator: "Equal", value: "gpu", effect: "NoSchedule"}}]""",
    "openshift": """Object{
        metadata: Object.metadata{annotations: {
            "openshift.io/scc": "restricted-v2", "security.openshift.io/validated-scc-subject-type": "user"}},
        spec: Object.spec{securityContext: Object.spec.securityContext{
            runAsUser: 1000680000, fsGroup: 1000680000,
            seLinuxOptions: Object.spec.securityContext.seLinuxOptions{level: "s0:c26,c15"}}}}""",
    "k3s": """Object{metadata: Object.metadata{annotations: {
        "policies.kyverno.io/last-applied-patches": "add-x.policy: added /metadata/labels/x"}}}""",
    "kubeadm": """Object{metadata: Object.metadata{annotations: {
        "sidecar.istio.io/status": "{}", "istio.io/rev": "default", "prometheus.io/scrape": "true",
        "kubectl.kubernetes.io/default-container": "notebook"}}}""",
}


def preset(name: str) -> dict[str, str]:
    data: dict[str, str] = yaml.safe_load((DEPLOY / "sites" / name / "site.yaml").read_text())["data"]
    return data


def pod_by(site: SiteProfile, namespace: str) -> Json:
    """The pod of a notebook as the worker makes it for this site."""
    inner = manifests.job(replace(NOTEBOOK, namespace=namespace), site)["spec"]["template"]
    metadata = {**inner["metadata"], "name": "probe", "namespace": namespace}
    metadata["annotations"] = {**metadata["annotations"], "gpu-portal/mark": "x"}
    spec = {**copy.deepcopy(inner["spec"]), "serviceAccountName": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def site(admin: Api) -> Iterator[SiteCopy]:
    with site_copy(admin) as found:
        yield found


def test_there_is_a_preset_for_each_and_every_key_of_it_is_right() -> None:
    folders = {path.name for path in (DEPLOY / "sites").iterdir()}
    assert folders == WEBHOOKS.keys()
    for name in folders:
        assert preset(name).keys() <= KEYS
        assert site_profile(preset(name)).problems == ()


@pytest.mark.parametrize("name", WEBHOOKS)
def test_the_preset_admits_what_such_a_cluster_adds_and_the_default_does_not(
    admin: Api, site: SiteCopy, name: str
) -> None:
    site.set_profile({})
    before = pod_by(site_profile({}), site.name)
    until(lambda: site.answer(before)[0] == 201, "no webhook changes pods yet")
    # The mark keeps the policy away from the probes of the profile.
    marked = "object.metadata.?annotations[?'gpu-portal/mark'].hasValue()"

    def is_refused() -> bool:
        return site.answer(before)[0] == 422

    with changes(admin, site.name, site.name, rules=PODS, when=marked, to=WEBHOOKS[name], until=is_refused):
        assert "gpu-portal fence" in site.answer(before)[1]
        site.set_profile(preset(name))
        profile = site_profile(preset(name))

        status, text = site.answer(pod_by(profile, site.name))

        assert status == 201, text
        site.set_profile({})
        assert is_refused()


def test_the_secret_that_openshift_gives_to_an_account_is_admitted_with_its_preset(admin: Api, site: SiteCopy) -> None:
    """The API server itself puts the Secrets of the account into pods."""
    site.set_profile({})
    pod = pod_by(site_profile(preset("openshift")), site.name)
    secrets = {"imagePullSecrets": [{"name": "gpu-portal-dockercfg-x7k2p"}]}
    admin.patch("v1/serviceaccounts", "default", secrets, namespace=site.name)
    try:
        until(lambda: "imagePullSecrets may name only" in site.answer(pod)[1], "the Secret is in pods, and refused")
        admin.apply(config_map(site.name, preset("openshift")))
        until(lambda: site.answer(pod)[0] == 201, "the Secret is admitted")
    finally:
        admin.patch("v1/serviceaccounts", "default", {"imagePullSecrets": None}, namespace=site.name)


def test_under_openshift_the_cluster_assigns_user_and_group() -> None:
    context = pod_by(site_profile(preset("openshift")), "team-a")["spec"]["securityContext"]

    assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()
    assert context["runAsNonRoot"] is True


@pytest.mark.parametrize("name", WEBHOOKS)
def test_its_caches_for_names_are_reached_and_nodes_with_gpus_avoided(admin: Api, name: str) -> None:
    profile = site_profile(preset(name))
    policy = network_egress(replace(SPEC, site=profile))
    policy["metadata"]["namespace"] = "default"
    admin.create(policy, dry_run=True)
    job = manifests.job(CPU, profile)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]

    (term,) = job["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    avoided = {one["key"] for one in term["matchExpressions"] if one["operator"] == "DoesNotExist"}
    assert avoided > set(profile.gpu_node_labels) > set()
    blocks = [one["ipBlock"]["cidr"] for rule in policy["spec"]["egress"] if "ports" in rule for one in rule["to"]
              if "ipBlock" in one]  # fmt: skip
    opened = {block.partition("/")[0] for block in blocks}
    assert opened == set(profile.dns_addresses)


@pytest.mark.parametrize("name", WEBHOOKS)
def test_it_is_a_component_that_changes_no_policy(admin: Api, name: str) -> None:
    """It patches only the profile and, where names are resolved elsewhere, the portal's own policy for them."""
    component = yaml.safe_load((DEPLOY / "sites" / name / "kustomization.yaml").read_text())
    assert component.keys() == {"apiVersion", "kind", "patches"}
    files = [one["path"] for one in component["patches"]]
    assert sorted(files) == sorted(
        path.name for path in (DEPLOY / "sites" / name).iterdir() if "kustom" not in path.name
    )
    shipped_objects = {(one["kind"], one["metadata"]["name"]): one for one in documents(DEPLOY)}

    for file in files:
        patch = yaml.safe_load((DEPLOY / "sites" / name / file).read_text())
        key = (patch["kind"], patch["metadata"]["name"])
        assert key in {("ConfigMap", "site"), ("NetworkPolicy", "names")}
        assert patch["metadata"] == shipped_objects[key]["metadata"]
        part = "data" if key[0] == "ConfigMap" else "spec"
        # Kustomize merges mappings and replaces these lists.
        body = {**shipped_objects[key], part: {**shipped_objects[key][part], **patch[part]}}
        params = {"dryRun": "All", "fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        admin.request("PATCH", admin._path_for(body), body, params=params, content_type="application/apply-patch+yaml")
