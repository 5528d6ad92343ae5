"""What a record reader returns, and one observed object: a small record and the columns of its mirror row. Pure.

A pod has 5 KB and a real node 50 KB, half of it managedFields; a record has only what pages and reconcilers read, a few
hundred bytes. A record must not contain values that change without meaning (heartbeats, versions), because an equal
record is not written. Times keep the API server's text. Each reader documents its keys; `cluster/reads/observed.py`
gives them types, `kinds.py` maps each kind to its reader.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cluster.client.managed_fields import FieldOwnership, field_ownership
from cluster.manifests.metadata import MANAGED_BY, MANAGED_LABEL, OWNER_LABEL
from portal.ops.redaction import SecretRedactor

Raw = dict[str, Any]

_redactor = SecretRedactor()

TEXT_LIMIT = 1024

KEPT_LABELS = ("gpu-portal/", "kueue.x-k8s.io/", "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion")


@dataclass(frozen=True, slots=True)
class RecordContent:
    """What a reader returns: typed columns of the kind's table, the record, whether the row is worth keeping, and
    whether it is kept in every namespace, not only in ours.
    """

    columns: dict[str, Any]
    record: dict[str, Any]
    is_kept: bool = True
    is_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One object as it was seen at `resource_version`. `namespace` is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: int
    created_at: str
    owner: str = ""
    is_ours: bool = False
    deleting_since: str | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    is_kept: bool = True
    is_everywhere: bool = False
    # Field ownership; only for objects that the portal applies, even if another client removed our labels.
    ownership: FieldOwnership | None = None

    def digest(self) -> int:
        """Digest of everything in the row except its version: equal digests need no write."""
        shown = (self.name, self.uid, self.owner, self.deleting_since, self.columns, self.record)
        return int.from_bytes(hashlib.blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=8).digest())


def observed_object(kind: str, raw: Raw, content: RecordContent, *, is_applied: bool) -> ObservedObject:
    """`is_applied`: the portal keeps applying this kind, so another writer is drift."""
    metadata = raw["metadata"]
    labels = metadata.get("labels") or {}
    owner = labels.get(OWNER_LABEL, "")[:120]
    return ObservedObject(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=int(metadata.get("resourceVersion") or 0),
        created_at=metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z",
        owner=owner,
        is_ours=labels.get(MANAGED_LABEL) == MANAGED_BY,
        deleting_since=metadata.get("deletionTimestamp"),
        columns=content.columns,
        record=content.record,
        is_kept=content.is_kept,
        is_everywhere=content.is_everywhere,
        ownership=field_ownership(metadata.get("managedFields") or [], raw) if is_applied else None,
    )


def condition_records(status: Raw, *, text_limit: int = TEXT_LIMIT) -> list[dict[str, Any]]:
    """Returns [{type, status, reason, message, since}] sorted by type: writers reorder them without meaning."""
    found = [
        {
            "type": condition["type"],
            "status": condition.get("status", "Unknown"),
            "reason": condition.get("reason", ""),
            "message": truncated(condition.get("message"), text_limit),
            "since": condition.get("lastTransitionTime"),
        }
        for condition in status.get("conditions") or []
    ]
    return sorted(found, key=lambda condition: condition["type"])


def controller_uid(metadata: Raw, kind: str) -> str:
    for reference in metadata.get("ownerReferences") or []:
        if reference.get("kind") == kind and reference.get("controller"):
            return str(reference["uid"])
    return ""


def truncated(text: Any, limit: int | None = TEXT_LIMIT) -> str:
    # PostgreSQL cannot store NUL in a text.
    return str(text or "").replace("\x00", "")[:limit]


def without_secrets(text: Any) -> str:
    """For texts that may quote a program's output or its command: a password or token in them is not stored. Sentences
    of the cluster itself name images and secrets with the same words, and explanations read them: they stay.
    """
    return _redactor.text(str(text)) if text else ""


def record_only(**record: Any) -> RecordContent:
    return RecordContent({}, record)
