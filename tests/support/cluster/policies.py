"""Admission policies as a site may have them. Each is in force in one namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json
from tests.support.waiting import wait_until

ADMISSION = "admissionregistration.k8s.io/v1"


def created(resource: str, *, group: str = "", versions: str = "v1") -> list[Json]:
    """Rules for the creation of one resource."""
    return [{"apiGroups": [group], "apiVersions": [versions], "operations": ["CREATE"], "resources": [resource]}]


PODS, JOBS = created("pods"), created("jobs", group="batch")
# A condition for pods of the workload of that name.
OF_WORKLOAD = "object.metadata.labels[?'gpu-portal/workload'].orValue('') == '{}'"


def only(namespace: str) -> Json:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


@contextmanager
def denies(
    admin: Api, namespace: str, name: str, *, rules: list[Json], unless: str, message: str, until: Callable[[], bool],
) -> Iterator[None]:  # fmt: skip
    """A policy that denies objects, with the message, unless the expression is true. The API server applies it some
    time after its creation: `until` says whether it is in force.
    """
    spec = {"validations": [{"expression": unless, "message": message}]}
    with _in_force(admin, namespace, name, "validating", rules, spec, {"validationActions": ["Deny"]}, until):
        yield


@contextmanager
def changes(
    admin: Api, namespace: str, name: str, *, rules: list[Json], when: str, to: str, until: Callable[[], bool],
) -> Iterator[None]:  # fmt: skip
    """A policy that changes objects for which `when` is true. `to`: the fields that it sets, as an expression, or JSON
    patches as a list, which can change lists. `until` as for `denies`.
    """
    is_list = to.startswith("[")
    how, part = ("JSONPatch", "jsonPatch") if is_list else ("ApplyConfiguration", "applyConfiguration")
    spec = {
        "reinvocationPolicy": "Never", "matchConditions": [{"name": "one", "expression": when}],
        "mutations": [{"patchType": how, part: {"expression": to}}],
    }  # fmt: skip
    with _in_force(admin, namespace, name, "mutating", rules, spec, {}, until):
        yield


@contextmanager
def _in_force(
    admin: Api, namespace: str, name: str, what: str, rules: list[Json], spec: Json, bound: Json,
    until: Callable[[], bool],
) -> Iterator[None]:  # fmt: skip
    kind, meta = f"{what.capitalize()}AdmissionPolicy", {"name": name}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}, **spec}
    binding = {"policyName": name, "matchResources": only(namespace), **bound}
    admin.create({"apiVersion": ADMISSION, "kind": kind, "metadata": meta, "spec": spec})
    admin.create({"apiVersion": ADMISSION, "kind": f"{kind}Binding", "metadata": meta, "spec": binding})
    try:
        wait_until(until, what=f"the policy {name} is in force")
        yield
    finally:
        lift(admin, name, what)
        admin.delete(f"{ADMISSION}/{what}admissionpolicies", name)


def lift(admin: Api, name: str, what: str = "validating") -> None:
    """The policy no longer applies."""
    admin.delete(f"{ADMISSION}/{what}admissionpolicybindings", name)


def trial_pod(namespace: str, workload: str) -> Json:
    """A pod that the portal's own rules for a namespace accept, labelled as one of the workload."""
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    least = {"cpu": "1m", "memory": "1Mi"}
    labels = {"gpu-portal/workload": workload, "gpu-portal/class": "none", "kueue.x-k8s.io/queue-name": "gpu-portal"}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "trial", "namespace": namespace, "labels": labels},
        "spec": {
            "priorityClassName": "gpu-portal", "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "none", "image": "none", "securityContext": restricted,
                    "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
                    "resources": {"requests": least, "limits": least},
                }
            ],
        },
    }  # fmt: skip


def refusal(admin: Api, trial: Json) -> str:
    """Returns the API server's refusal of an object, "" if it accepts it. The object is never created."""
    try:
        admin.create(trial, dry_run=True)
    except ApiError as error:
        return str(error)
    return ""
