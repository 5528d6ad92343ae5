"""RBAC is exactly what the design needs: as written in the files, and as the API server answers each identity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.trials import objects as trials
from cluster.client import api_kinds
from cluster.manifests import pool, run, workers
from cluster.manifests.namespace import namespace_objects
from cluster.manifests.run_spec import ClaimSpec
from cluster.manifests.specs import CohortSpec, FlavorSpec
from cluster.mirror.leases import LEASES
from cluster.mirror.records import kinds
from devcluster.client.kube import Api, ApiError, path_of
from tests.cluster.manifests.test_manifests_namespace import SPEC
from tests.cluster.manifests.test_manifests_run import DRA, NOTEBOOK
from tests.support.cluster.identities import Impersonating, until

Json = dict[str, Any]
Right = tuple[str, str, str]  # API group, resource (with [name] where limited to one), verb
BASE = Path(__file__).parents[3] / "deploy" / "base"

WRITE = "get create patch delete"
# group: resources: verbs. Nothing here may grow without the design saying so.
WORKER = {
    "": {
        "namespaces limitranges resourcequotas serviceaccounts": WRITE,
        "persistentvolumeclaims services": "get create delete",
        "secrets": "create patch delete",
    },
    "networking.k8s.io": {"networkpolicies": WRITE},
    "rbac.authorization.k8s.io": {
        "rolebindings": WRITE,
        "clusterroles[gpu-portal-tenant] clusterroles[gpu-portal-logs]": "bind",
    },
    "batch": {"jobs": "get create patch delete"},
    "resource.k8s.io": {"resourceclaimtemplates": "get create delete"},
    "kueue.x-k8s.io": {
        "clusterqueues localqueues cohorts resourceflavors": WRITE,
        "workloads": "get create patch delete",
    },
}
MAINTENANCE = {"": {"nodes": "get patch"}}
ADOPTION = {
    "": {"limitranges persistentvolumeclaims resourcequotas serviceaccounts services": "list"},
    "apps": {"daemonsets deployments statefulsets": "list"},
    "batch": {"cronjobs jobs": "list"},
    "kueue.x-k8s.io": {"localqueues": "list"},
    "networking.k8s.io": {"networkpolicies": "list"},
    "rbac.authorization.k8s.io": {"rolebindings": "list"},
}
WATCHER = {
    "": {
        "nodes pods events namespaces persistentvolumeclaims resourcequotas limitranges serviceaccounts": "list watch",
        "persistentvolumes": "list watch",
    },
    "batch": {"jobs": "list watch"},
    "storage.k8s.io": {"storageclasses": "list watch"},
    "networking.k8s.io": {"networkpolicies": "list watch"},
    "rbac.authorization.k8s.io": {"rolebindings": "list watch"},
    "kueue.x-k8s.io": {"clusterqueues localqueues cohorts resourceflavors topologies workloads": "list watch"},
    "resource.k8s.io": {"resourceclaims resourceslices deviceclasses": "list watch"},
    "karpenter.sh": {"nodepools nodeclaims": "list watch"},
    "nvidia.com": {"clusterpolicies nvidiadrivers": "list watch"},
    "coordination.k8s.io": {
        "leases[c1f6bfd2.kueue.x-k8s.io] leases[kube-scheduler] leases[kube-controller-manager]": "list"
    },
}
# In the portal's own namespace only.
SITE = {"": {"configmaps[site]": "list watch"}}
LOGS = {"": {"pods/log": "get"}}
TENANT = {
    "": {"pods pods/log events persistentvolumeclaims resourcequotas limitranges": "get list watch"},
    "events.k8s.io": {"events": "get list watch"},
    "batch": {"jobs": "get list watch"},
    "kueue.x-k8s.io": {"localqueues workloads": "get list watch"},
}
ROLES = {
    "gpu-portal-worker": WORKER,
    "gpu-portal-adoption": ADOPTION,
    "gpu-portal-maintenance": MAINTENANCE,
    "gpu-portal-watcher": WATCHER,
    "gpu-portal-logs": LOGS,
    "gpu-portal-tenant": TENANT,
}


def written_out(table: dict[str, dict[str, str]]) -> set[Right]:
    return {
        (group, resource, verb)
        for group, rows in table.items()
        for resources, verbs in rows.items()
        for resource in resources.split()
        for verb in verbs.split()
    }


OF_WORKER = written_out(WORKER) | written_out(MAINTENANCE) | written_out(ADOPTION)


def rights(rules: list[Json]) -> set[Right]:
    return {right for rule in rules for right in _of_rule(rule)}


def _of_rule(rule: Json) -> Iterator[Right]:
    for group in rule.get("apiGroups", []):
        for resource in rule.get("resources", []):
            for name in rule.get("resourceNames") or [""]:
                for verb in rule["verbs"]:
                    yield group, f"{resource}[{name}]" if name else resource, verb


def shipped() -> list[Json]:
    files = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [document for file in files for document in yaml.safe_load_all((BASE / file).read_text())]


def test_the_shipped_roles_equal_the_table() -> None:
    roles = {body["metadata"]["name"]: body["rules"] for body in shipped() if body["kind"] == "ClusterRole"}

    assert {name: rights(rules) for name, rules in roles.items()} == {
        name: written_out(table) for name, table in ROLES.items()
    }
    assert not any("nonResourceURLs" in rule for rules in roles.values() for rule in rules)
    [one] = [body for body in shipped() if body["kind"] == "Role"]
    assert (one["metadata"]["namespace"], rights(one["rules"])) == ("gpu-portal", written_out(SITE))


def test_the_watcher_may_read_exactly_what_it_follows() -> None:
    of_kinds = [kind for kind in kinds.KINDS.values() if not kind.namespace]
    read = {(*_group_and_plural(kind.path), verb) for kind in of_kinds for verb in ("list", "watch")}
    of_leases = {("coordination.k8s.io", f"leases[{name}]", "list") for _namespace, name in LEASES.values()}

    assert written_out(WATCHER) == read | of_leases
    [site] = [kind for kind in kinds.KINDS.values() if kind.namespace]
    assert (site.name, site.namespace, site.field_selector) == ("ConfigMap", "gpu-portal", "metadata.name=site")


def test_the_worker_may_write_only_kinds_that_it_makes() -> None:
    """The verbs of each: those of a namespace's and the catalog's objects are applied, and deleted one by one except
    the quota; those of a run are created and deleted; a Job is also relabelled.
    """
    made = [*namespace_objects(replace(SPEC, grace=SPEC.cells or ())), *pool_objects(), *run_objects()]
    made.append(trials.workload("a"))
    paths = {_group_and_plural(api_kinds.api_path(kind)) for kind in {one["kind"] for one in made}}

    granted = {(group, resource) for group, resource, verb in written_out(WORKER) if verb != "bind"}
    assert granted == paths


def _group_and_plural(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return (parts[1] if parts[0] == "apis" else ""), parts[-1]


def pool_objects() -> list[Json]:
    flavor = FlavorSpec("a", owner="o", slug="a", node_labels={}, tolerations=(), topology="")
    return [pool.resource_flavor(flavor), pool.cohort(CohortSpec("a", owner="o", cells=()))]


def run_objects() -> list[Json]:
    claim = ClaimSpec(owner="o", namespace="a", name="a", size_gib=1)
    return [
        run.job(DRA),
        run.claim_template(DRA),
        run.token_secret(NOTEBOOK, token="t", job_uid="1"),
        run.volume_claim(claim),
        workers.headless_service(DRA, "a", job_uid="1"),
    ]


def test_only_worker_and_watcher_have_a_role_in_the_whole_cluster() -> None:
    bindings = [body for body in shipped() if body["kind"].endswith("Binding") and "roleRef" in body]

    assert {
        (b["kind"], b["roleRef"]["name"], s["kind"], s["namespace"], s["name"]) for b in bindings for s in b["subjects"]
    } == {
        ("ClusterRoleBinding", f"gpu-portal-{who}", "ServiceAccount", "gpu-portal", who)
        for who in ("worker", "watcher")
    } | {
        ("ClusterRoleBinding", "gpu-portal-adoption", "ServiceAccount", "gpu-portal", "worker"),
        ("ClusterRoleBinding", "gpu-portal-maintenance", "ServiceAccount", "gpu-portal", "worker"),
        ("RoleBinding", "gpu-portal-watcher-site", "ServiceAccount", "gpu-portal", "watcher"),
    }


def test_the_portals_own_namespace_is_not_a_tenants() -> None:
    [own] = [body for body in shipped() if body["kind"] == "Namespace"]

    assert "app.kubernetes.io/managed-by" not in own["metadata"]["labels"]


def test_accounts_give_no_token_to_pods_that_did_not_ask() -> None:
    accounts = [body for body in shipped() if body["kind"] == "ServiceAccount"]

    assert {account["metadata"]["name"] for account in accounts} == {"worker", "watcher", "doors"}
    assert all(account["automountServiceAccountToken"] is False for account in accounts)


def asked(api: Api, namespace: str) -> set[Right]:
    """The API server's answer about this identity's rights there, without the rights that every identity has."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = api.request("POST", path_of("authorization.k8s.io/v1/selfsubjectrulesreviews"), review)["status"]
    everybody = {"authentication.k8s.io", "authorization.k8s.io"}
    return {right for right in rights(status["resourceRules"]) if right[0] not in everybody}


def test_the_api_server_agrees_about_worker_and_watcher(worker: Api, watcher: Api, ours: str) -> None:
    for place in (ours, "kube-system"):
        assert asked(worker, place) == OF_WORKER
        assert asked(watcher, place) == written_out(WATCHER)
    assert asked(watcher, "gpu-portal") == written_out(WATCHER) | written_out(SITE)


def bind(worker: Api, namespace: str, role: str, subject: Json, *, name: str = "") -> None:
    labels = {"app.kubernetes.io/managed-by": "gpu-portal"}
    worker.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name or role, "namespace": namespace, "labels": labels},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
    )


def test_a_tenants_people_look_at_their_own_namespace_only(
    services: Json, worker: Api, ours: str, foreign: str
) -> None:
    alice = Impersonating(services["kubeconfigs"]["admin"], user="alice@example.org")
    bind(worker, ours, "gpu-portal-tenant", {"kind": "User", "name": "alice@example.org"})

    until(lambda: asked(alice, ours) == written_out(TENANT), "Alice may look here")
    assert asked(alice, foreign) == set()
    assert alice.raw("GET", path_of("v1/pods", namespace=ours))[0] == 200
    for path in (path_of("v1/secrets", namespace=ours), path_of("v1/pods", namespace=foreign), path_of("v1/pods")):
        assert alice.raw("GET", path)[0] == 403
    for resource in ("v1/pods", "batch/v1/jobs"):
        assert alice.raw("POST", path_of(resource, namespace=ours), {"metadata": {"name": "x"}})[0] == 403


def test_doors_follows_logs_where_it_is_bound_and_does_nothing_else(
    worker: Api, doors: Api, ours: str, foreign: str
) -> None:
    assert asked(doors, ours) == set()
    bind(worker, ours, "gpu-portal-logs", {"kind": "ServiceAccount", "name": "doors", "namespace": "gpu-portal"})

    # The API server's cache of bindings lags a moment behind.
    until(lambda: asked(doors, ours) == written_out(LOGS), "doors may follow logs here and nothing else")
    assert asked(doors, foreign) == asked(doors, "kube-system") == asked(doors, "gpu-portal") == set()
    for place, status in ((ours, 404), (foreign, 403)):  # 404: authorized, but the pod does not exist
        assert doors.raw("GET", path_of("v1/pods", "absent", namespace=place, subresource="log"))[0] == status
    for path in (path_of("v1/pods", namespace=ours), path_of("v1/secrets", namespace=ours), path_of("v1/nodes")):
        assert doors.raw("GET", path)[0] == 403


def test_the_worker_reads_logs_where_it_is_bound_and_nothing_more_of_pods(worker: Api, ours: str, foreign: str) -> None:
    subject = {"kind": "ServiceAccount", "name": "worker", "namespace": "gpu-portal"}
    assert worker.raw("GET", path_of("v1/pods", "absent", namespace=ours, subresource="log"))[0] == 403
    bind(worker, ours, "gpu-portal-logs", subject, name="logs-of-the-worker")
    try:
        until(lambda: asked(worker, ours) == OF_WORKER | written_out(LOGS), "the worker may read logs here")
        for place, status in ((ours, 404), (foreign, 403)):
            assert worker.raw("GET", path_of("v1/pods", "absent", namespace=place, subresource="log"))[0] == status
        assert worker.raw("GET", path_of("v1/pods", namespace=ours))[0] == 403
    finally:
        # Other tests read the rights of the worker in this namespace.
        worker.delete("rbac.authorization.k8s.io/v1/rolebindings", "logs-of-the-worker", namespace=ours)
        until(lambda: asked(worker, ours) == OF_WORKER, "the worker may read no logs here")


@pytest.mark.parametrize("verb", ["POST", "PATCH", "PUT", "DELETE"])
def test_the_watcher_writes_nothing(watcher: Api, ours: str, verb: str) -> None:
    kinds = ("v1/pods", "v1/secrets", "v1/resourcequotas", "batch/v1/jobs", "kueue.x-k8s.io/v1beta2/localqueues")
    for resource in kinds:
        path = path_of(resource, "" if verb == "POST" else "x", namespace=ours)
        body = {"metadata": {"name": "x"}}
        content_type = "application/merge-patch+json" if verb == "PATCH" else "application/json"

        assert watcher.raw(verb, path, body, params={"dryRun": "All"}, content_type=content_type)[0] == 403, resource


def test_the_watcher_sees_no_secret_and_of_config_maps_the_site_profile(watcher: Api, foreign: str) -> None:
    closed = (path_of("v1/secrets"), path_of("v1/secrets", namespace=foreign), path_of("v1/configmaps"))
    for path in (*closed, path_of("v1/configmaps", namespace="gpu-portal")):
        with pytest.raises(ApiError) as refused:
            watcher.request("GET", path)
        assert refused.value.status == 403
    one = {"fieldSelector": "metadata.name=site"}
    items = watcher.request("GET", path_of("v1/configmaps", namespace="gpu-portal"), params=one)["items"]
    assert [item["metadata"]["name"] for item in items] == ["site"]
