"""Preview of a launch: the objects that it would create, and the same launch as one call of the API.

The same functions make the real objects. Nothing is written.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import yaml
from django.conf import settings
from django.urls import reverse

from accounts.core.actor import Actor
from cluster.manifests import run as manifests
from cluster.manifests import workers
from cluster.manifests.metadata import Manifest
from cluster.manifests.run_spec import NOTEBOOK, ClaimSpec, RunSpec
from cluster.models import Cluster
from portal.core.errors import Refusal, refuse
from tenants.models import Namespace
from workloads.core import policy
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import custom_images
from workloads.launch import policy as launch_policy
from workloads.launch import queries as launch_queries
from workloads.launch import spec as launch_spec
from workloads.launch.options import level_text
from workloads.launch.types import LaunchSpec
from workloads.models import Volume, Workload
from workloads.storage import queries as storage_queries

# The C implementation is several times faster; some builds of PyYAML lack it.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Owner labels name rows that do not exist yet.
NUMBERED = "numbered-at-launch"
LEFT_OUT = "left out"


@dataclass(frozen=True)
class PreviewedObject:
    """`what`: one sentence; `text`: the object as YAML."""

    kind: str
    name: str
    what: str
    text: str


@dataclass(frozen=True)
class LaunchPreview:
    """`refusal`: why nothing would be created. `call`: the same launch as a shell command. `level`: where all workers
    would be, "" for anywhere in the class.
    """

    refusal: Refusal | None
    objects: tuple[PreviewedObject, ...] = ()
    call: str = ""
    level: str = ""


@dataclass(frozen=True)
class PreviewContext:
    """Where the objects would be created. `volumes`: names of existing volumes; `number`: of the run."""

    namespace: Namespace
    team: policy.TeamFacts
    volumes: Collection[str]
    number: int = 1


def launch_preview(by: Actor, place: PreviewContext, wanted: LaunchSpec) -> LaunchPreview:
    """At most four queries, one more with secrets, one without GPUs, three with a volume.

    Terms that are not accepted yet are shown beside the button; every other refusal by the action is shown here.
    """
    namespace = place.namespace
    target = launch_queries.launch_target(namespace, wanted, by=by)
    if target is None:
        return LaunchPreview(refuse("unknown_class", "Select a class first.", field="gpu_class").refusal)
    facts = replace(target.facts, terms_accepted=True)
    if refusal := launch_policy.may_declare(by, place.team, facts, wanted):
        return LaunchPreview(refusal)
    if refusal := secret_actions.missing_secrets_refusal(namespace, wanted.options.secrets):
        return LaunchPreview(refusal)
    own = wanted.name if place.number > 1 else ""
    if wanted.volume and (
        refusal := storage_queries.volume_refusal(
            namespace,
            wanted.volume,
            wanted.volume_gib,
            target.gpu_class,
            instead_of=own,
            storage_class=wanted.volume_class,
            workers=wanted.workers,
        )
    ):
        return LaunchPreview(refusal)
    if target.image is None:
        return LaunchPreview(custom_images.unknown_image_refusal(namespace, wanted))
    if target.image_problem:
        return LaunchPreview(Refusal("image_does_not_run", target.image_problem, "image"))
    workload = Workload(
        tenant=namespace.tenant,
        namespace=namespace,
        name=wanted.name,
        kind=wanted.kind,
        gpu_class=target.gpu_class,
        units=wanted.units,
        image=target.image.reference,
        own_image=target.image.is_own,
        command=list(wanted.command),
        options=wanted.options.to_json(),
        volume=storage_queries.new_volume(
            namespace, wanted.volume, size_gib=wanted.volume_gib, storage_class=wanted.volume_class
        )
        if wanted.volume
        else None,
    )
    spec = replace(launch_spec.frozen_spec(workload, place.number), owner=f"workloads.workload.{NUMBERED}")
    made = previewed_objects(
        namespace.cluster, spec, volume=workload.volume if wanted.volume not in place.volumes else None
    )
    said = wanted.options
    level = level_text(said.topology_level, is_required=said.topology_required) if said.topology_level else ""
    return LaunchPreview(None, made, api_call(namespace.tenant.slug, wanted), level)


def previewed_objects(cluster: Cluster, spec: RunSpec, *, volume: Volume | None) -> tuple[PreviewedObject, ...]:
    """`volume`: the name of a volume that does not exist yet."""
    found = []
    if spec.interface == "dra":
        found.append(_planned(manifests.claim_template(spec), "Requests exactly these devices."))
    pods = "1 pod" if spec.workers == 1 else f"{spec.workers} pods, all or none"
    found.append(_planned(launch_spec.job_manifest(cluster, spec), f"Is queued in the team's queue, then runs {pods}."))
    if spec.workers > 1:
        service = workers.headless_service(spec, manifests.job_name(spec), job_uid=LEFT_OUT)
        found.append(_planned(service, "DNS names of the workers. It is deleted with the job."))
    if launch_spec.needs_secret(spec):
        secret = manifests.token_secret(spec, token="", job_uid=LEFT_OUT, opened=dict.fromkeys(spec.secrets, ""))
        secret["data"] = dict.fromkeys(secret["data"], LEFT_OUT)
        token = ["The notebook's token, known only to the gateway."] if spec.kind == NOTEBOOK else []
        chosen = ["The selected secrets of the team. Only the worker can decrypt them."] if spec.secrets else []
        found.append(_planned(secret, " ".join([*token, *chosen])))
    if spec.registry:
        sign_in = manifests.pull_secret(spec, username="", password="", job_uid=LEFT_OUT)
        sign_in["data"] = dict.fromkeys(sign_in["data"], LEFT_OUT)
        found.append(_planned(sign_in, f"Credentials to pull from {spec.registry}, if the team has them."))
    if volume is not None:
        owner = f"workloads.volume.{NUMBERED}"
        claim = ClaimSpec(owner, spec.namespace, volume.name, volume.size_gib, volume.storage)
        found.append(_planned(manifests.volume_claim(claim), "The new volume. It is kept when the run ends."))
    return tuple(found)


def api_call(tenant: str, wanted: LaunchSpec) -> str:
    """Returns a shell command with a placeholder for the token."""
    address = f"{settings.PORTAL_URL}{reverse('api-workloads')}?{urlencode({'team': tenant})}"
    body = json.dumps(api_call_body(wanted), indent=2, ensure_ascii=False)
    return (
        "curl -X POST -H 'Authorization: Bearer <token>' -H 'Content-Type: application/json' \\\n"
        f"  {shlex.quote(address)} \\\n  -d {shlex.quote(body)}"
    )


def api_call_body(wanted: LaunchSpec) -> dict[str, Any]:
    """Returns the body of `POST /api/v1/workloads`; defaults are omitted."""
    said: dict[str, Any] = {
        "name": wanted.name,
        "kind": wanted.kind,
        "gpu_class": wanted.gpu_class,
        "units": wanted.units,
        "image": wanted.image,
        "command": list(wanted.command),
        "volume": wanted.volume,
        "volume_gib": wanted.volume_gib if wanted.volume else 0,
        "volume_class": wanted.volume_class if wanted.volume else "",
        "accept_terms": wanted.accept_terms,
        "visibility": wanted.visibility,
        "options": wanted.options.to_json(),
    }
    return {key: value for key, value in said.items() if value}


def _planned(manifest: Manifest, what: str) -> PreviewedObject:
    text = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return PreviewedObject(manifest["kind"], manifest["metadata"]["name"], what, text)
