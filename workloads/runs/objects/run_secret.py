"""The Secret of one run: a notebook's token and the values of the team's secrets that the run uses."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.conf import settings
from django.utils import timezone

from cluster.apply import reconcile as apply_reconcile
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.run_spec import JOB, RunSpec
from cluster.models import AppliedObject
from portal.core.due import TryLater
from workloads.core.observation import Observation, current_container
from workloads.credentials import sealing
from workloads.credentials.notebook_token import key_id, token_of_run
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import Run, Workload
from workloads.status.explain.container_start import NO_KEY, OTHER_KEY

log = structlog.get_logger(__name__)
# A kubelet reads a new Secret within seconds: until then its message is outdated.
SEEN_AFTER = timedelta(seconds=15)


def run_secret_manifest(workload: Workload, run: Run, spec: RunSpec, *, job_uid: str) -> Manifest | None:
    """Returns None while one of the secrets cannot be decrypted: a run never starts with only some of its secrets. One
    query if secrets were selected, otherwise none; one more the first time for a notebook.
    """
    token = _token(workload, run) if spec.kind != JOB else ""
    opened = _opened(workload, spec)
    if missing := sorted(set(spec.secrets) - set(opened)):
        log.error("run waits for what cannot be unsealed", run=manifests.job_name(spec), names=missing)
        return None
    return manifests.token_secret(spec, token=token, job_uid=job_uid, opened=opened)


def _token(workload: Workload, run: Run) -> str:
    """Records its key before it is sent, so that the key can be replaced while the notebook runs."""
    token_key = run.token_key or key_id(settings.NOTEBOOK_TOKEN_KEY)
    token = token_of_run(token_key, workload_id=workload.pk, run_number=run.number)
    if not run.token_key:
        Run.objects.filter(pk=run.pk).update(token_key=token_key)
    return token


def require_readable_secrets(workload: Workload, spec: RunSpec, sent: AppliedObject | None) -> None:
    """Raises TryLater while the Secret of a run cannot be created; all other objects were sent before.

    The message of TryLater is for operators. No query if the Secret was created or no secret was selected, otherwise
    one.
    """
    if not spec.secrets or (sent is not None and sent.result == AppliedObject.Result.APPLIED):
        return
    missing = sorted(set(spec.secrets) - set(_opened(workload, spec)))
    if not missing:
        return
    names = ", ".join(missing)
    if not settings.SECRETS_PRIVATE_KEY:
        text = (
            f"The worker has no SECRETS_PRIVATE_KEY and cannot decrypt {names}, which the run waits for. Set the key."
        )
        raise TryLater(NO_KEY, text)
    text = (
        f"The worker's SECRETS_PRIVATE_KEY cannot decrypt {names}, which the run waits for. Set the private key of the "
        "pair that encrypted them, or ask the team to save them again."
    )
    raise TryLater(OTHER_KEY, text)


def recreate_if_missing(
    run: Run, spec: RunSpec, job: AppliedObject, sent: AppliedObject | None, seen: Observation, *, kube: Kube
) -> bool:
    """Creates the Secret again if it, or a part of it, was deleted: the kubelet that waits for it reports that. Returns
    whether it waits: a report that stays the same is no event. Raises TryLater as `require_readable_secrets` does. No
    query unless the Secret is missing.
    """
    require_readable_secrets(run.workload, spec, sent)
    if sent is None or not _is_missed(seen, sent):
        return False
    if timezone.now() - sent.sent_at < SEEN_AFTER:
        return True
    secret = run_secret_manifest(run.workload, run, spec, job_uid=job.uid)
    if secret is not None:
        log.warning("a run's secret was gone and is made again", run=job.name)
        apply_reconcile.send(kube=kube, cluster_id=sent.cluster_id, owner=sent.owner, manifest=secret, row=sent)
    return True


def _is_missed(seen: Observation, sent: AppliedObject) -> bool:
    texts = [one.message for pod in seen.pods if (one := current_container(pod)) is not None and one.state == "waiting"]
    signs = (f'secret "{sent.name}" not found', f"in Secret {sent.namespace}/{sent.name}")
    return any(sign in text for text in texts for sign in signs)


def secret_values(workload: Workload, spec: RunSpec) -> tuple[str, ...]:
    """Returns the current values of the selected secrets, to hide them in recorded texts of the run."""
    return tuple(_opened(workload, spec).values())


def _opened(workload: Workload, spec: RunSpec) -> dict[str, str]:
    """Returns by name the selected secrets that this process can decrypt. No query if none was selected,
    otherwise one.
    """
    if not spec.secrets:
        return {}
    rows = TeamSecret.objects.filter(namespace_id=workload.namespace_id, name__in=spec.secrets)
    opened = {row.name: sealing.unseal(bytes(row.sealed)) for row in rows}
    return {name: value for name, value in opened.items() if value is not None}
