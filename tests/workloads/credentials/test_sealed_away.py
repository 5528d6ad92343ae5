"""A run whose secrets the worker cannot decrypt: its page states this, and the health page has the remedy."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests.run_spec import RunSpec
from cluster.models import AppliedObject, MirrorPod
from portal.core import due
from portal.core.due import TryLater, owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import running
from tests.support.rows.running import container
from workloads.credentials import sealing
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import Run, Workload
from workloads.runs.objects import run_secret
from workloads.runs.reconcile import reconcile

pytestmark = pytest.mark.django_db


@pytest.fixture
def waits(granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A notebook with a secret; its Job was sent and its container waits for the Secret."""
    TeamSecret.objects.create(namespace=namespace_a, name="MINE", sealed=sealing.seal("value"), created_by=alice)
    found = running.workload(namespace_a, a100, by=alice)
    pod = running.make_ready(found)
    waiting = container("notebook", "waiting", reason="CreateContainerConfigError", message='secret "one-1" not found')
    conditions = [one for one in pod.record["conditions"] if one["type"] != "Ready"]
    record = {**pod.record, "containers": [waiting], "conditions": conditions}
    MirrorPod.objects.update(phase="Pending", record=record)
    run = Run.objects.get()
    Run.objects.update(started_at=None, ready_at=None, spec={**run.spec, "secrets": ["MINE"]})
    sent = {"cluster_id": namespace_a.cluster_id, "owner": owner_label(found), "namespace": namespace_a.name}
    AppliedObject.objects.create(kind="Job", name="one-1", uid=f"job-{found.pk}", result="applied", **sent)
    Workload.objects.update(observed_generation=1, due_at=timezone.now())
    return found


def work(kube: Kube) -> Workload:
    """Does what a worker does."""
    claimed = due.claim(Workload)
    assert claimed is not None
    due.run_claimed(claimed, partial(reconcile, kube=kube))
    return Workload.objects.get()


@pytest.mark.parametrize(
    ("key", "code", "sentence", "told"),
    [
        (
            "", "no_worker_key",
            "The portal cannot decrypt the secret of this run: its worker has no key.",
            "The worker has no SECRETS_PRIVATE_KEY and cannot decrypt MINE",
        ),
        (
            PrivateKey.generate().encode(Base64Encoder).decode(), "sealed_for_another_key",
            "The portal cannot decrypt the secret of this run: its worker has a different key.",
            "SECRETS_PRIVATE_KEY cannot decrypt MINE",
        ),
    ],
    ids=["no key", "another key"],
)  # fmt: skip
def test_page_api_and_health_say_that_the_worker_cannot_open_it(
    waits: Workload, alice: User, olga: User, kube_worker: Kube, client: Client, settings: Any,
    key: str, code: str, sentence: str, told: str,
) -> None:  # fmt: skip
    settings.SECRETS_PRIVATE_KEY = key
    row = work(kube_worker)
    assert (row.error_code, told in row.error_text) == (code, True)
    assert row.due_at is not None, "it is tried again by itself"
    assert Run.objects.get().admitted_at is not None, "what was seen is recorded all the same"

    client.force_login(alice)
    body = client.get("/api/v1/workloads/one?team=team-a").json()
    assert (body["status"]["phase"], body["status"]["reason"]) == ("blocked", code)
    assert body["status"]["message"] == sentence
    assert body["status"]["facts"] == {"node": "a100-1", "secrets": 1}
    (stuck,) = [step for step in body["steps"] if step["state"] == "stuck"]
    assert "contact an operator" in stuck["remedy"].lower()
    assert told in stuck["raw"]
    assert stuck["raw_from"] == "the portal's worker"
    client.force_login(olga)
    page = " ".join(client.get("/health").content.decode().split())
    assert "1 failing task" in page
    assert f"<code>{code}</code>" in page
    assert escape(row.error_text) in page


def test_with_its_key_the_worker_asks_for_nothing(waits: Workload, settings: Any) -> None:
    spec = RunSpec.from_json(Run.objects.get().spec)
    run_secret.require_readable_secrets(waits, spec, None)
    settings.SECRETS_PRIVATE_KEY = ""
    run_secret.require_readable_secrets(waits, spec, AppliedObject(result="applied"))
    with pytest.raises(TryLater):
        run_secret.require_readable_secrets(waits, spec, AppliedObject(result="refused"))
