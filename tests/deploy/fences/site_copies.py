"""The pod fence with a site profile of its own, in one namespace: the shipped policy is in force for all tests at once.

The namespace does not have the label of team namespaces, so that only the copy applies there.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from devcluster.client.kube import Api, path_of
from tests.deploy.fences.pods import Json, template
from tests.support.cluster.identities import until, wait_for_default_account
from tests.support.cluster.removal import remove_namespace
from tests.support.shipped import DEPLOY

ADMISSION = "admissionregistration.k8s.io/v1"
PROBE = "gpu-portal fence"


@dataclass(frozen=True)
class SiteCopy:
    """`name`: of the namespace, of the policy in force there and of its binding."""

    admin: Api
    name: str

    def set_profile(self, data: Mapping[str, str]) -> None:
        """The ConfigMap is the only object that changes. Waits until the policy reads it."""
        mark = f"mark.example.org/m{uuid.uuid4().hex[:8]}"
        marked = {**data, "pod-annotations": f"{data.get('pod-annotations', '')}\n{mark}"}
        self.admin.apply(config_map(self.name, marked))
        probe = pod_with(self.name, {mark: "x"})
        until(lambda: self.answer(probe)[0] == 201, "the policy reads the new profile")

    def remove_profile(self) -> None:
        self.admin.delete("v1/configmaps", "site", namespace=self.name)
        until(lambda: "no params found" in self.answer(pod_with(self.name, {}))[1], "the policy misses its profile")

    def answer(self, body: Json) -> tuple[int, str]:
        """Status and text of a dry run."""
        resource = {"Pod": "v1/pods", "Job": "batch/v1/jobs"}[body["kind"]]
        path = path_of(resource, namespace=self.name)
        status, data = self.admin.raw("POST", path, body, params={"dryRun": "All"})
        return status, data.decode()


def config_map(namespace: str, data: Mapping[str, str]) -> Json:
    metadata = {"name": "site", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def pod_with(namespace: str, annotations: Mapping[str, str]) -> Json:
    body = {"apiVersion": "v1", "kind": "Pod", **template()}
    body["metadata"] = {**body["metadata"], "name": "probe", "namespace": namespace, "annotations": dict(annotations)}
    return body


@contextmanager
def site_copy(admin: Api) -> Iterator[SiteCopy]:
    """Begins with the shipped profile, which sets nothing."""
    name = f"fence-site-{uuid.uuid4().hex[:8]}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"fence-site": name}}})
    policy, binding = shipped()
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    policy["spec"]["matchConstraints"]["namespaceSelector"] = {"matchLabels": {"fence-site": name}}
    binding["spec"]["paramRef"]["namespace"] = name
    try:
        wait_for_default_account(admin, name)
        admin.apply(config_map(name, {}))
        admin.create(policy)
        admin.create(binding)
        found = SiteCopy(admin, name)
        until(lambda: PROBE in found.answer(wrong_pod(name))[1], "the copy of the policy is in force")
        found.set_profile({})
        yield found
    finally:
        admin.delete(f"{ADMISSION}/validatingadmissionpolicybindings", name)
        admin.delete(f"{ADMISSION}/validatingadmissionpolicies", name)
        remove_namespace(admin, admin.get("v1/namespaces", name))


def wrong_pod(namespace: str) -> Json:
    body = pod_with(namespace, {})
    body["spec"] = {**body["spec"], "schedulerName": "another"}
    return body


def shipped() -> tuple[Json, Json]:
    policy, binding = yaml.safe_load_all((DEPLOY / "base" / "fence-pods.yaml").read_text())
    return copy.deepcopy(policy), copy.deepcopy(binding)
