"""A release from its first installation to its end, in a cluster of its own: `helm install`, `upgrade`, `rollback`,
`test`, `uninstall`, and the change from kustomize to Helm. Pods do not run there: a test says how they ended.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from devcluster.client.kube import ApiError
from tests.deploy.helm.chart import NAMESPACE, RELEASE, Json, by_name, is_hook
from tests.deploy.helm.conftest import Fresh
from tests.support.shipped import DEPLOY
from tests.support.waiting import wait_until

ADDED = ("app.kubernetes.io/managed-by", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
RESTRICTED = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}


def helm(fresh: Fresh, *arguments: str, values: Json | None = None) -> str:
    done = fresh.chart.helm(*arguments, values=values)
    assert not done.returncode, done.stderr
    return done.stdout


def read(fresh: Fresh, one: Json) -> Json:
    found: Json = fresh.api.request("GET", fresh.api._path_for(one))
    return found


def jobs(fresh: Fresh) -> list[str]:
    return [one["metadata"]["name"] for one in fresh.api.list("batch/v1/jobs", namespace=NAMESPACE)]


@pytest.fixture(autouse=True)
def nothing_stays(fresh: Fresh) -> Iterator[None]:
    """Except the namespace: no controller runs that could delete it."""
    yield
    helm(fresh, "uninstall", RELEASE, "--ignore-not-found")
    for one in fresh.chart.kustomized():
        if one["kind"] != "Namespace":
            with suppress(ApiError):
                fresh.api.request("DELETE", fresh.api._path_for(one))


@pytest.fixture
def installed(fresh: Fresh) -> str:
    """What `helm install` said."""
    return helm(fresh, "install", RELEASE, str(DEPLOY), "--create-namespace")


def test_an_installation_has_every_object_and_says_what_is_next(fresh: Fresh, installed: str) -> None:
    rendered = [one for one in fresh.chart.objects() if not is_hook(one)]

    for one in rendered:
        found = read(fresh, one)["metadata"]
        assert found["labels"][ADDED[0]] == "Helm"
        assert [found["annotations"][name] for name in ADDED[1:]] == [RELEASE, NAMESPACE]
    assert "helm test gpu-portal" in installed
    # --create-namespace makes one without labels.
    assert "kubectl label namespace gpu-portal pod-security.kubernetes.io/enforce=restricted" in installed
    fresh.api.patch("v1/namespaces", NAMESPACE, RESTRICTED)
    assert "kubectl label" not in helm(fresh, "upgrade", RELEASE, str(DEPLOY))


def test_every_revision_runs_its_own_migration(fresh: Fresh, installed: str) -> None:
    """A Job cannot be changed: with one name, `upgrade` to another image would be refused."""
    [first] = jobs(fresh)
    newer = {"images": {"portal": "registry.example.org/gpu-portal:0.2.0"}}
    helm(fresh, "upgrade", RELEASE, str(DEPLOY), values=newer)
    [second] = jobs(fresh)
    helm(fresh, "upgrade", RELEASE, str(DEPLOY), values=newer)
    [third] = jobs(fresh)
    helm(fresh, "rollback", RELEASE, "1")
    [fourth] = jobs(fresh)

    assert len({first, second, third}) == 3
    assert fourth == first
    assert first.startswith("migrate-1-")


def test_the_end_of_a_release_leaves_what_teams_depend_on(fresh: Fresh, installed: str) -> None:
    before = by_name([one for one in fresh.chart.objects() if not is_hook(one)])
    helm(fresh, "uninstall", RELEASE)

    assert fresh.api.list("apps/v1/deployments", namespace=NAMESPACE) == []
    assert [one["metadata"]["name"] for one in fresh.api.list("v1/configmaps", namespace=NAMESPACE)] == ["site"]
    for kind, name in (
        ("ValidatingAdmissionPolicy", "gpu-portal-pods"),
        ("ValidatingAdmissionPolicyBinding", "gpu-portal-pods"),
        ("ConfigMap", "site"),
        ("PriorityClass", "gpu-portal"),
        ("ClusterRole", "gpu-portal-tenant"),
        ("Topology", "gpu-portal"),
    ):
        assert read(fresh, before[kind, name])["metadata"]["name"] == name
    # The next installation takes it over.
    helm(fresh, "install", RELEASE, str(DEPLOY))


def test_an_installation_by_kustomize_goes_on_with_helm(fresh: Fresh) -> None:
    shipped = fresh.chart.kustomized()
    for one in sorted(shipped, key=lambda one: one["kind"] != "Namespace"):
        fresh.api.apply(one)
    refused = fresh.chart.helm("install", RELEASE, str(DEPLOY))
    assert "cannot be imported into the current release" in refused.stderr

    helm(fresh, "install", RELEASE, str(DEPLOY), "--take-ownership", "--force-conflicts", values={"host": "gpu.test"})

    settings = fresh.api.get("v1/configmaps", "settings", namespace=NAMESPACE)
    assert settings["data"]["PORTAL_HOST"] == "gpu.test"
    for one in shipped:
        if one["kind"] not in ("Namespace", "Job") and not one["metadata"]["name"].startswith("gateway-"):
            assert read(fresh, one)["metadata"]["labels"][ADDED[0]] == "Helm"

    newer = {"host": "gpu.test", "images": {"portal": "registry.example.org/gpu-portal:0.2.0"}}
    refused = fresh.chart.helm("upgrade", RELEASE, str(DEPLOY), values=newer)
    assert "conflict occurred while applying object" in refused.stderr, "the first owner keeps its fields"
    helm(fresh, "upgrade", RELEASE, str(DEPLOY), "--force-conflicts", values=newer)
    web = fresh.api.get("apps/v1/deployments", "web", namespace=NAMESPACE)
    assert web["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":0.2.0")


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_helm_test_says_how_its_pod_ended(fresh: Fresh, installed: str, phase: str, code: int) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    fresh.api.apply(account)
    command = [fresh.chart.programs["helm"], "test", RELEASE, "--namespace", NAMESPACE]
    command += ["--kubeconfig", str(fresh.chart.kubeconfig), "--timeout", "100s"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        wait_until(lambda: fresh.api.find("v1/pods", "health", namespace=NAMESPACE))
        assert fresh.api.find("networking.k8s.io/v1/networkpolicies", "health", namespace=NAMESPACE)
        fresh.api.patch_status("v1/pods", "health", {"phase": phase}, namespace=NAMESPACE)
        said, _ = process.communicate(timeout=110)

    assert process.returncode == code, said
    assert f"Phase:          {phase}" in said
    fresh.api.delete("v1/pods", "health", namespace=NAMESPACE, grace_s=0)
