"""What is provisioned in the fault matrix, how the worker reconciles it, and the resulting objects in the cluster.

Objects are compared whole, without what only the API server writes, and with the names of the case replaced: two teams
are equal when they differ only in names. Leftover fields are compared as well: a field that the portal owns by an
`Update` and that is not in its later apply can never be removed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from catalog.classes import queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.client.managed_fields import has_stale_fields
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES, Call
from portal.core import due
from portal.core.due import owner_label
from tenants.models import Namespace
from tenants.provisioning import reconcile, steps
from tests.support.rows import make

# Merge patches of what the portal sends; names as in a comparison.
EDITS: dict[str, dict[Key, dict[str, Any]]] = {
    "namespace": {
        ("Namespace", "NAME"): {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        ("LimitRange", "gpu-portal"): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "8"}}]}},
        ("ResourceQuota", "gpu-portal"): {"spec": {"hard": {"pods": "7"}}},
        ("NetworkPolicy", "gpu-portal-ingress"): {"spec": {"ingress": [{}]}},
        ("NetworkPolicy", "gpu-portal-egress"): {"spec": {"egress": [{}]}},
        ("ServiceAccount", "gpu-portal"): {"automountServiceAccountToken": True},
        ("RoleBinding", "gpu-portal-tenant"): {"subjects": []},
        ("RoleBinding", "gpu-portal-logs"): {"subjects": []},
        ("ClusterQueue", "NAME"): {"spec": {"preemption": {"reclaimWithinCohort": "Never"}}},
        ("LocalQueue", "gpu-portal"): {"spec": {"stopPolicy": "Hold"}},
    },
    "pool": {
        ("ResourceFlavor", "FLAVOR"): {"spec": {"nodeTaints": []}},
        ("Cohort", "NAME"): {"spec": {"resourceGroups": []}},
    },
}

OBJECTS = [(sort, key) for sort, edits in EDITS.items() for key in edits]


Json = dict[str, Any]
Row = Namespace | Pool
Key = tuple[str, str]  # kind, name

NAMESPACED = {
    "ResourceQuota": "v1/resourcequotas",
    "LimitRange": "v1/limitranges",
    "ServiceAccount": "v1/serviceaccounts",
    "NetworkPolicy": "networking.k8s.io/v1/networkpolicies",
    "RoleBinding": "rbac.authorization.k8s.io/v1/rolebindings",
    "LocalQueue": "kueue.x-k8s.io/v1beta2/localqueues",
}
CLUSTER_WIDE = {
    "Namespace": "v1/namespaces",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2/clusterqueues",
    "Cohort": "kueue.x-k8s.io/v1beta2/cohorts",
    "ResourceFlavor": "kueue.x-k8s.io/v1beta2/resourceflavors",
}
PATHS = NAMESPACED | CLUSTER_WIDE
UNITS = 2
# A refused object is retried after minutes: this much time passes between two reconciles.
LATER = timedelta(minutes=10)


@dataclass(frozen=True)
class Scene:
    """One row with its AppliedObject rows. `words`: its own names, and their replacements in a comparison."""

    row: Row
    words: tuple[tuple[str, str], ...]

    @property
    def names(self) -> set[str]:
        """The names of its cluster-wide objects."""
        return {name for name, word in self.words if word in ("NAME", "FLAVOR")}

    def again(self) -> Row:
        self.row.refresh_from_db()
        return self.row


@dataclass(frozen=True)
class Stage:
    """One class whose flavor is in the cluster, for any number of teams; and pools, each with a cluster row of its own.

    `kube` goes through the `proxy`, with the worker's rights; `admin` does not.
    """

    gpu_class: GpuClass
    admin: Api
    proxy: ApiProxy
    kube: Kube
    unique: str

    # ---- teams and pools -----------------------------------------------------------------------------------------

    def team(self, name: str) -> Scene:
        """A requested team that was not yet reconciled, with two units in force."""
        full = f"{name}-{self.unique}"
        tenant = make.tenant(self.gpu_class.cluster, slug=full, namespace=full)
        make.grant(tenant, self.gpu_class, units=UNITS)
        row = tenant.namespaces.get()
        due.touch(Namespace, row.pk)
        return Scene(row, ((full, "NAME"), (owner_label(row), "OWNER")))

    def pool(self, name: str) -> Scene:
        full = f"{name}-{self.unique}"
        cohort = f"gpu-portal-{full}"
        cluster = Cluster.objects.create(name=full, notebooks_domain="notebooks.localhost", cohort=cohort)
        gpu_class = make.gpu_class(cluster, slug=f"c-{full}")
        row = Pool.objects.create(cluster=cluster)
        flavor = queries.flavor_name(gpu_class)
        return Scene(row, ((flavor, "FLAVOR"), (gpu_class.slug, "SLUG"), (cohort, "NAME"), (owner_label(row), "OWNER")))

    def scene(self, sort: str, name: str) -> Scene:
        return self.pool(name) if sort == "pool" else self.team(name)

    # ---- the worker ----------------------------------------------------------------------------------------------

    def look(self, scene: Scene) -> Row:
        """Reconciles as a worker does: claim, reconcile, finish or fail. The row has to be due and not leased."""
        model = type(scene.row)
        model._base_manager.exclude(pk=scene.row.pk).update(due_at=None)
        claimed = due.claim(model)
        assert claimed is not None, "the row is due and nobody is on it"
        due.run_claimed(claimed, partial(_reconciler(model), kube=self.kube))
        return scene.again()

    def settle(self, scene: Scene) -> Row:
        """Reconciles as over hours until the row is settled. Afterwards one more reconcile writes nothing."""
        for _look in range(8):
            if is_settled(scene.again()):
                break
            let_time_pass(scene)
            self.look(scene)
        row = scene.again()
        assert is_settled(row), f"{row}: {row.generation}/{row.observed_generation} {row.error_code} {row.error_text}"
        before = len(self.writes())
        type(row)._base_manager.filter(pk=row.pk).update(due_at=Now())
        self.look(scene)
        again = self.writes()[before:]
        assert not again, f"what is settled is written again: {again}"
        return row

    def writes(self) -> list[Call]:
        """Every write that was sent to the proxy so far, including those that never arrived."""
        return [done.call for done in list(self.proxy.done) if done.call.verb in WRITES and not done.call.dry_run]

    # ---- state of the cluster ------------------------------------------------------------------------------------

    def raw(self, scene: Scene) -> dict[Key, Json]:
        """Every object of these kinds with one of the scene's names or in its namespace, whoever created it."""
        found: dict[Key, Json] = {}
        for kind, path in CLUSTER_WIDE.items():
            if isinstance(scene.row, Pool) and kind in ("Namespace", "ClusterQueue"):
                continue
            for name in scene.names:
                if item := self.admin.find(path, name):
                    found[(kind, name)] = item
        if isinstance(scene.row, Namespace):
            for kind, path in NAMESPACED.items():
                for item in self.admin.list(path, namespace=scene.row.name):
                    found[(kind, item["metadata"]["name"])] = item
        # Kubernetes creates it some time after the namespace.
        found.pop(("ServiceAccount", "default"), None)
        return found

    def state(self, scene: Scene) -> dict[str, Json]:
        return {
            worded(scene, f"{kind} {name}"): json.loads(worded(scene, json.dumps(_meant(item), sort_keys=True)))
            for (kind, name), item in self.raw(scene).items()
        }


def worded(scene: Scene, text: str) -> str:
    for name, word in scene.words:
        text = text.replace(name, word)
    return text


def is_settled(row: Row) -> bool:
    return row.observed_generation >= row.generation and not row.error_code and row.leased_until is None


def let_time_pass(scene: Scene) -> None:
    """Moves the row ten minutes on: its lease expires, refused objects may be retried, and it is due."""
    AppliedObject.objects.filter(owner=owner_label(scene.row)).update(sent_at=F("sent_at") - LATER)
    type(scene.row)._base_manager.filter(pk=scene.row.pk).update(due_at=Now(), leased_until=None)


def _reconciler(model: type[Row]) -> Callable[..., due.Outcome]:
    return reconcile.reconcile_pool if model is Pool else steps.work_on_namespace


def _meant(item: Json) -> Json:
    metadata = item["metadata"]
    managed = metadata.get("managedFields") or []
    ours = {one["operation"] for one in managed if one["manager"] == "gpu-portal"}
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}
    rest = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    return {**rest, "metadata": kept, "ours": bool(ours), "left": "Apply" in ours and has_stale_fields(managed)}


def ids(case: Any) -> str:
    return " ".join(case) if isinstance(case, tuple) else str(case)
