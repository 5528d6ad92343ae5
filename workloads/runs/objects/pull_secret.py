"""The Secret with which the pod of one run signs in to the registry of its image. It is made from the team's stored
login.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.utils import timezone

from cluster.apply import applied_objects
from cluster.apply import reconcile as apply_reconcile
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.run_spec import RunSpec
from cluster.models import AppliedObject
from workloads.credentials.registries import actions as registry_actions
from workloads.models import RegistryCredential, Workload

log = structlog.get_logger(__name__)
Sent = dict[tuple[str, str], AppliedObject]
REFUSED_AGAIN = timedelta(seconds=300)


def sync_pull_secret(workload: Workload, spec: RunSpec, job: AppliedObject, sent: Sent, *, kube: Kube) -> bool:
    """Creates, updates or deletes the pull secret, and returns whether it is as the team's login wants it. One query.
    The pod does not wait for it: without it, the node pulls from the registry anonymously, and retries later. Every
    change of the login wakes the row.
    """
    key = ("Secret", manifests.pull_secret_name(spec))
    known = sent.get(key)
    kept = RegistryCredential.objects.filter(namespace_id=workload.namespace_id, registry=spec.registry).first()
    if kept is None:
        if known is not None:
            apply_reconcile.delete_row(kube, known)
            del sent[key]
        return True
    opened = registry_actions.unseal_login(bytes(kept.sealed))
    if opened is None:
        log.error("credentials cannot be unsealed", run=manifests.job_name(spec), registry=spec.registry)
        return False
    manifest = manifests.pull_secret(spec, username=opened.username, password=opened.password, job_uid=job.uid)
    if known is None or _is_to_send(known, manifest):
        sent[key] = apply_reconcile.send(
            kube=kube, cluster_id=job.cluster_id, owner=spec.owner, manifest=manifest, row=known
        )
    return sent[key].result == AppliedObject.Result.APPLIED


def _is_to_send(known: AppliedObject, manifest: Manifest) -> bool:
    if known.manifest_hash != applied_objects.manifest_hash(manifest):
        return True
    return known.result != AppliedObject.Result.APPLIED and timezone.now() - known.sent_at > REFUSED_AGAIN
