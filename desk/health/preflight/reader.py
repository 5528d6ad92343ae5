"""Reads a cluster for the checks: lists, reviews of rights, dry runs. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cluster.client.errors import ClusterRefused, ClusterUnavailable, Conflict, Gone, NotFound
from cluster.client.kube import Kube
from cluster.manifests import names
from cluster.manifests.metadata import KUEUE_API, Manifest
from desk.health.preflight import kueue, trials
from desk.health.preflight.types import ClusterFacts, Raw, Trial, TrialResult, name_of, namespace_of

CORE, APPS, KUEUE, DEVICES = "api/v1", "apis/apps/v1", f"apis/{KUEUE_API}", "apis/resource.k8s.io/v1"
# plural → where it is served.
LISTS: Mapping[str, str] = {
    "nodes": CORE,
    "namespaces": CORE,
    "services": CORE,
    "daemonsets": APPS,
    "deployments": APPS,
    "storageclasses": "apis/storage.k8s.io/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "deviceclasses": DEVICES,
    "resourceslices": DEVICES,
    "clusterqueues": KUEUE,
    "cohorts": KUEUE,
    "resourceflavors": KUEUE,
    "topologies": KUEUE,
    "workloadpriorityclasses": KUEUE,
    "clusterpolicies": "apis/nvidia.com/v1",
}
PORTAL_NAMESPACE = "gpu-portal"
# What `kubectl apply -k deploy` creates: group → resources, cluster-wide and in the portal's namespace.
CLUSTER_WIDE = {
    "": ("namespaces",),
    "rbac.authorization.k8s.io": ("clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    "scheduling.k8s.io": ("priorityclasses",),
    "flowcontrol.apiserver.k8s.io": ("flowschemas",),
    "kueue.x-k8s.io": ("topologies", "resourceflavors", "workloadpriorityclasses"),
}
IN_NAMESPACE = {
    "": ("serviceaccounts", "configmaps", "secrets", "services"),
    "apps": ("deployments",),
    "batch": ("jobs",),
    "rbac.authorization.k8s.io": ("roles", "rolebindings"),
    "networking.k8s.io": ("networkpolicies",),
    "policy": ("poddisruptionbudgets",),
}


def read_cluster(kube: Kube, *, namespace: str) -> ClusterFacts:
    """`namespace`: an existing one in which pods and Jobs are tried. Raises ClusterUnavailable or ClusterRefused if the
    cluster does not say its version.
    """
    version = str(kube.raw("version").get("gitVersion", ""))
    groups = {group["name"]: tuple(one["version"] for one in group["versions"]) for group in kube.raw("apis")["groups"]}
    objects: dict[str, tuple[Raw, ...]] = {}
    unread: dict[str, str] = {}
    for plural, prefix in LISTS.items():
        try:
            objects[plural] = tuple(_list(kube, f"{prefix}/{plural}"))
        except NotFound:
            continue
        except (ClusterRefused, ClusterUnavailable, Gone) as error:
            unread[plural] = str(error)
    has_priority_class = any(name_of(one) == names.PRIORITY_CLASS for one in objects.get("priorityclasses", ()))
    return ClusterFacts(
        version=version,
        groups=groups,
        lists=objects,
        unread=unread,
        kueue_settings=_kueue_settings(kube, objects.get("deployments", ())),
        missing_rights=tuple(_missing_rights(kube)),
        trials=tuple(
            _try(kube, manifest) for manifest in trials.trial_objects(namespace, has_priority_class=has_priority_class)
        ),
    )


def _list(kube: Kube, path: str) -> Iterator[Raw]:
    token, is_first = "", True
    while token or is_first:
        page = kube.list_page(path, continue_token=token)
        kind = str(page.get("kind", "")).removesuffix("List")
        yield from ({"kind": kind, **item} for item in page["items"])
        token, is_first = page["metadata"].get("continue", ""), False


def _kueue_settings(kube: Kube, deployments: tuple[Raw, ...]) -> str | None:
    found = kueue.manager(deployments)
    if found is None or not (name := kueue.settings_volume(found)):
        return None
    try:
        data: dict[str, Any] = kube.get("ConfigMap", name=name, namespace=namespace_of(found)).body.get("data") or {}
    except (ClusterRefused, ClusterUnavailable):
        return None
    return next((text for key, text in sorted(data.items()) if key.endswith((".yaml", ".yml"))), None)


def _missing_rights(kube: Kube) -> Iterator[str]:
    if kube.may("*", group="*", resource="*"):
        return
    for where, rights in (("", CLUSTER_WIDE), (PORTAL_NAMESPACE, IN_NAMESPACE)):
        for group, resources in rights.items():
            for resource in resources:
                verbs = [
                    verb
                    for verb in ("create", "patch")
                    if not kube.may(verb, group=group, resource=resource, namespace=where)
                ]
                if verbs:
                    yield f"{' and '.join(verbs)} {resource}"
    # The installation gives rights, which needs them or this verb.
    if not kube.may("escalate", group="rbac.authorization.k8s.io", resource="clusterroles"):
        yield "escalate clusterroles"


def _try(kube: Kube, manifest: Manifest) -> Trial:
    try:
        return Trial(manifest, TrialResult.ACCEPTED, answer=kube.create(manifest, dry_run=True).body)
    except Conflict:
        # Admission is asked before the name is found to be taken.
        return Trial(manifest, TrialResult.ACCEPTED)
    except NotFound as error:
        return Trial(manifest, TrialResult.UNTRIED, error.text)
    except ClusterRefused as error:
        lacks_right = " cannot create resource " in error.text
        return Trial(manifest, TrialResult.UNTRIED if lacks_right else TrialResult.REFUSED, error.text)
    except ClusterUnavailable as error:
        return Trial(manifest, TrialResult.REFUSED, str(error))
