"""The end state of one case, comparable with that of another one: rows, objects of the team, and mails.

Rows without keys and times; a reference is only compared as being there. Names of the case are replaced, and digits in
texts, because many are times. Tables that only mirror the cluster are left out: a watcher writes them, not the
operation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, models
from django.db.backends.postgresql.psycopg_any import Range

from portal.core.due import Due
from tests.faults.crashes.types import Ground, Place
from tests.faults.scenes import CLUSTER_WIDE, NAMESPACED

Json = dict[str, Any]
MORE_KINDS = {"Job": "batch/v1/jobs", "Claim": "v1/persistentvolumeclaims", "Secret": "v1/secrets"}
# Rows of frameworks that no operation writes, and rows that only say what the cluster is like or what was measured. And
# why a log could not be kept: whether its pod was still there depends on the pace of the cluster.
LEFT_OUT = re.compile(
    r"(django|auth|account|mfa|usersessions)_|cluster_(mirror|admission|podremoval)|usage_runhour|workloads_runlog"
)
# Values that differ between two cases which are equal. `OWN`: a random origin of notebooks.
OWN = {"workloads.Workload.origin"}
VARIES = {
    "id", "attempts", "due_at", "leased_until", "generation", "observed_generation", "manifest_hash", "uid", "digest",
    "token_hash", "hash", "prefix", "password", "resource_version", "request_id", "call", "body_hash",
    "identity", "resourceVersion", "creationTimestamp", "controller-uid", "batch.kubernetes.io/controller-uid",
    "nodeName", "volumeName",
    "kueue.x-k8s.io/workload", "gpu-portal/identity", "body", "actor_id", "key", "data", "line",
}  # fmt: skip


# Uids, the first characters of tokens, and the sums at the end of flavors' names.
OF_CASE = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|(?<=^token )\w+$|(?<=\()\w+(?=…\))|(?<=NAME-)[0-9a-f]{6,10}\b")


def wipe() -> None:
    """Empties every table except those that migrations fill for the framework."""
    kept = {"django_migrations", "django_content_type", "auth_permission"}
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for table in connection.introspection.table_names(cursor):
            if table not in kept:
                cursor.execute(f'DELETE FROM "{table}"')
        cursor.execute("SET session_replication_role = origin")


def state(ground: Ground, place: Place) -> dict[str, Any]:
    return {**_rows(place), **_objects(ground, place), "mails": mails(place)}


def mails(place: Place) -> list[str]:
    """Each message once, however often it was sent: a worker that dies between sending and recording sends it again
    with the same Message-ID.
    """
    file = Path(place.directory, "mails")
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    once = {number: (to, subject) for number, to, subject in lines}
    return sorted(_plain(place, f"{to} {subject}") for to, subject in once.values())


def _rows(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for model in apps.get_models():
        if LEFT_OUT.match(model._meta.db_table) or not model._meta.managed:
            continue
        rows = Counter(json.dumps(_row(place, row), sort_keys=True) for row in model._base_manager.all())
        if rows:
            found[f"rows {model._meta.label}"] = dict(sorted(rows.items()))
    return found


def _row(place: Place, row: models.Model) -> Json:
    values: Json = {}
    for field in row._meta.concrete_fields:
        if field.primary_key or field.name in VARIES or str(field) in OWN:
            continue
        value = getattr(row, field.attname)
        values[field.name] = ("set" if value is not None else None) if field.is_relation else _plain(place, value)
    if isinstance(row, Due):
        values["settled"] = row.observed_generation >= row.generation and row.leased_until is None
    return values


def _objects(ground: Ground, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, path in CLUSTER_WIDE.items():
        for item in ground.admin.list(path):
            if place.name in item["metadata"]["name"]:
                found[_plain(place, f"{kind} {item['metadata']['name']}")] = _meant(place, item)
    for kind, path in (NAMESPACED | MORE_KINDS).items():
        for item in ground.admin.list(path, namespace=place.name):
            if item["metadata"]["name"] != "default" or kind != "ServiceAccount":
                found[_plain(place, f"{kind} {item['metadata']['name']}")] = _meant(place, item)
    return found


def _meant(place: Place, item: Json) -> Any:
    metadata = {key: item["metadata"].get(key) for key in ("labels", "annotations", "deletionTimestamp")}
    rest = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    if item.get("kind") == "Secret" or "data" in rest:
        rest["data"] = sorted(rest.get("data") or {})
    return _plain(place, {**rest, "metadata": metadata})


def _plain(place: Place, value: Any) -> Any:
    if isinstance(value, dict):
        return {str(_plain(place, key)): _plain(place, one) for key, one in value.items() if key not in VARIES}
    if isinstance(value, list | tuple | set):
        return [_plain(place, one) for one in value]
    if isinstance(value, datetime | date | time | timedelta | UUID):
        return "set"
    if isinstance(value, str):
        text = OF_CASE.sub("…", value.replace(place.name, "NAME"))
        # Six hours of one case may be five hours and 59 minutes of another.
        return re.sub(r"\d+", "#", text).replace("# h # min", "# h")
    if isinstance(value, Range):
        return [_plain(place, value.lower), _plain(place, value.upper)]
    return value if isinstance(value, bool | int | type(None)) else str(value)


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {_apart(found.get(name), wanted.get(name))}"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]


def _apart(found: Any, wanted: Any) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = [key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)]
        return "; ".join(f"{key}: {found.get(key)} is not {wanted.get(key)}" for key in sorted(map(str, keys)))
    return f"{found} is not {wanted}"
