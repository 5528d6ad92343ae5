"""Objects that a worker created for a run but did not record because it died. They are found by name, and recognized by
the portal's labels.
"""

from __future__ import annotations

from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.metadata import IDENTITY_LABEL, OWNER_LABEL
from cluster.manifests.run_spec import RunSpec
from cluster.models import AppliedObject


def record_orphans(spec: RunSpec, sent: dict[tuple[str, str], AppliedObject], *, cluster_id: int, kube: Kube) -> None:
    """Adds the objects to `sent` too, so that they are deleted like all others. One request for each kind that is not
    recorded. The portal may not read Secrets; they are deleted with their Job.
    """
    name = manifests.job_name(spec)
    for kind in ("Job", "ResourceClaimTemplate") if spec.interface == "dra" else ("Job",):
        if (kind, name) in sent:
            continue
        try:
            found = kube.get(kind, name=name, namespace=spec.namespace)
        except NotFound:
            continue
        if found.labels.get(OWNER_LABEL) == spec.owner and found.labels.get(IDENTITY_LABEL, "") == spec.identity:
            sent[kind, name], _ = AppliedObject.objects.update_or_create(
                cluster_id=cluster_id,
                kind=kind,
                namespace=spec.namespace,
                name=name,
                defaults={"owner": spec.owner, "uid": found.uid, "result": AppliedObject.Result.APPLIED},
            )
