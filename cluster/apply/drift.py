"""Records each drift that a reconcile met: which writer changed what, how often, and whether it was repaired."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

from django.db.models import Case, F, Value, When
from django.utils import timezone

from cluster.models import AppliedObject, ObjectDrift

KEPT = timedelta(days=90)


def record_drift(made: AppliedObject, found: dict[str, Any]) -> None:
    """`made`: the row after the attempt; `found`: its difference before. At most three statements. A retry of the same
    change is not counted again.
    """
    fields, manager = [str(one) for one in found.get("fields") or ()], str(found.get("manager") or "")[:128]
    is_deletion, since = bool(found.get("gone")), str(found.get("since") or "")[:40]
    is_repaired = made.result == AppliedObject.Result.APPLIED
    now = timezone.now()
    key = hashlib.sha256(json.dumps([manager, fields, is_deletion]).encode()).hexdigest()
    same = {name: getattr(made, name) for name in ("cluster_id", "kind", "namespace", "name")} | {"key": key}
    last = {
        "owner": made.owner,
        "outcome": ObjectDrift.Outcome.REPAIRED if is_repaired else ObjectDrift.Outcome.REFUSED,
        "since": since,
        "last_at": now,
    }
    times = Case(When(since=since, then=F("times")), default=F("times") + Value(1))
    if not ObjectDrift.objects.filter(**same).update(**last, times=times):
        first = {"first_at": now, "manager": manager, "fields": fields, "is_deletion": is_deletion}
        ObjectDrift.objects.bulk_create([ObjectDrift(**same, **last, **first)], ignore_conflicts=True)
        ObjectDrift.objects.filter(last_at__lt=now - KEPT).delete()
