"""Puts a payload into every text field of the API: as much of it as the field's rule accepts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Model
from django.db.models.functions import Now

from tests.injection.payload import CANDIDATES, LONG, MIDDLE, SHORT
from tests.support.http.bodies import Call, Schema, answer_of, bodies, kind_of, whole
from tests.support.http.visits import signed_in_once, undone

Way = tuple[str, ...]
# These operations change what others need, so they come last.
LAST = ("withdraw", "end", "delete", "stop", "decline", "namespace", "revoke")


def texts(schema: Schema, way: Way = ()) -> Iterator[Way]:
    """The path to each free text in the schema; "[]" is a list item, "{}" a value under a free key."""
    found = whole(schema)
    match kind_of(found) if "enum" not in found else "enum":
        case "string":
            if "format" not in found:
                yield way
        case "array":
            yield from texts(found["items"], (*way, "[]"))
        case "object":
            if isinstance(more := found.get("additionalProperties"), dict):
                yield from texts(more, (*way, "{}"))
            for name, one in found.get("properties", {}).items():
                yield from texts(one, (*way, name))


def put(body: Any, way: Way, text: str) -> Any:
    """Returns a copy with the text at that path."""
    step, *rest = way
    if step == "[]":
        item = put(body[0] if body else {}, tuple(rest), text) if rest else text
        return [item]
    if step == "{}":
        return {**(body or {}), "MARKED": text}
    inner = put((body or {}).get(step), tuple(rest), text) if rest else text
    return {**(body or {}), step: inner}


def mark(calls: dict[str, Call]) -> tuple[set[str], set[str]]:
    """Does each operation once. Returns the fields that accepted a payload, and those whose rule accepts none."""
    took, refused = set(), set()
    with signed_in_once({call.who for call in calls.values()}):
        for operation in sorted(calls, key=lambda name: any(word in name for word in LAST)):
            call = calls[operation]
            body = copy.deepcopy(call.body)
            for way in texts(bodies()[operation][2]):
                name = f"{operation} {'.'.join(way)}"
                for text in CANDIDATES:
                    tried = put(body, way, text)
                    with undone():
                        answer = answer_of(call.who, operation, call, tried)
                    assert answer["Content-Type"] == "application/json" or not answer.content, name
                    if answer.status_code < 300:
                        body = tried
                        took.add(name)
                        break
                else:
                    refused.add(f"{name}: {answer.status_code} {json.loads(answer.content)['code']}")
            answer_of(call.who, operation, call, body)
    return took, refused


# Texts from other sources: the administration, the catalog's file, identity providers, the cluster.
FROM_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "accounts.User": ("name",),
    "accounts.ApiToken": ("name",),
    "accounts.Delivery": ("error_text",),
    "accounts.Event": ("actor",),
    "accounts.Identity": ("issuer",),
    "catalog.Banner": ("text",),
    "catalog.GpuClass": ("name", "summary", "vendor", "product", "partition", "interconnect_note", "eligibility",
                         "terms", "retiring_message", "held_reason"),
    "catalog.DeviceTrial": ("text",),
    "catalog.DismissedProposal": ("reason",),
    "catalog.NodeMeasurement": ("product", "driver", "withdrawn_because"),
    "catalog.Image": ("version", "contents", "vendor"),
    "catalog.Pool": ("error_text",),
    "cluster.AppliedObject": ("code", "text"),
    "cluster.MirrorKind": ("problem",),
    "cluster.ObjectDrift": ("manager",),
    "cluster.MirrorWarning": ("object_name", "reason", "message", "source"),
    "cluster.PodRemoval": ("message", "disruption", "disruption_message"),
    "operations.Adoption": ("error_text",),
    "operations.NodeCordon": ("manager",),
    "operations.Maintenance": ("reason", "error_text"),
    "operations.MaintenanceNode": ("problem",),
    "tenants.Announcement": ("title", "body"),
    "tenants.Bundle": ("summary",),
    "tenants.TeamRequest": ("name", "purpose", "reason"),
    "tenants.JoinRequest": ("message", "reason"),
    "tenants.Tenant": ("name", "purpose"),
    "tenants.Namespace": ("error_text",),
    "tenants.QuotaRequest": ("justification",),
    "tenants.QuotaLine": ("rule", "reason"),
    "tenants.RequestComment": ("text",),
    "tenants.Plan": ("error_text",),
    "workloads.Volume": ("error_text",),
    "workloads.Workload": ("error_text",),
    "workloads.Run": ("group", "message", "stop_message", "drain_reason"),
    "workloads.NotebookWatch": ("error_text", "problem", "kept_reason"),
    "workloads.RunLog": ("text",),
    "workloads.AllocationInterval": ("end_reason",),
    "usage.GpuFault": ("node", "device", "gpu_model"),
    "usage.FaultSource": ("problem",),
    "usage.IdleRun": ("kept_reason",),
    "usage.TelemetrySource": ("problem",),
}  # fmt: skip
# Columns whose values the database or a URL restricts.
WORDS = (
    "actor_kind", "address", "api_version", "basis", "body", "call", "code", "cohort", "component", "device_class",
    "device_selector", "digest", "email", "error_code", "flavor", "format", "gpu_class", "image", "instance",
    "job_uid", "key", "kind", "link", "location", "manifest_hash", "mig_config", "min_cuda", "name", "namespace",
    "node", "node_uid", "notebooks_domain", "object_kind", "object_name", "object_uid", "origin", "other_uid",
    "outcome", "owner", "password", "phase", "plugin_config", "pod_uid", "prefix", "priority", "queue", "queued_uid",
    "reason", "reference", "registry", "renewal", "request_id", "resource", "resource_version", "row", "run",
    "selector", "session_key", "since", "slug", "stage", "step", "stop_reason", "storage_class", "subject", "tenant",
    "token_key", "topology", "uid", "verb", "via", "written_step",
)  # fmt: skip

# Columns that a database constraint requires together with this one.
BESIDE: dict[str, dict[str, Any]] = {"terms": {"terms_version": 1}, "held_reason": {"held_since": Now()}}


def text_columns() -> Iterator[tuple[type[Model], str]]:
    for app in ("accounts", "catalog", "cluster", "tenants", "workloads", "usage"):
        for model in apps.get_app_config(app).get_models():
            for column in model._meta.fields:
                if isinstance(column, models.CharField | models.TextField) and not column.choices:
                    yield model, column.name


def mark_rows() -> list[str]:
    """Puts a payload into every free text column. Returns the columns that are in neither list."""
    unknown = []
    with connection.cursor() as cursor:
        # A trigger forbids changes of events.
        cursor.execute("ALTER TABLE accounts_event DISABLE TRIGGER USER")
        for model, name in text_columns():
            if name in FROM_ELSEWHERE.get(model._meta.label, ()):
                length = model._meta.get_field(name).max_length or 300
                text = next(one for one in (LONG, MIDDLE, SHORT) if len(one) <= length)
                try:
                    with transaction.atomic():
                        model._default_manager.update(**{name: text}, **BESIDE.get(name, {}))
                except IntegrityError:
                    unknown.append(f"{model._meta.label}.{name} is judged by the database")
            elif name not in WORDS:
                unknown.append(f"{model._meta.label}.{name}")
        cursor.execute("ALTER TABLE accounts_event ENABLE TRIGGER USER")
    return unknown
