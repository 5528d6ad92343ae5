"""Objects of a namespace as templates and API show them: numbers as text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from cluster.apply import status
from cluster.models import AppliedObject
from cluster.observe_only.queries import WAITING
from portal.ui.statuses import STATUSES
from tenants.models import Namespace


def result_of(row: AppliedObject, absent: Collection[int] = ()) -> str:
    return status.object_status(row, absent)


def applied_object(row: AppliedObject, absent: Collection[int] = ()) -> dict[str, Any]:
    """For components/data/_objects.html. `absent`: see cluster/apply/queries.py."""
    result = result_of(row, absent)
    return {
        "kind": row.kind,
        "name": row.name,
        "result": result,
        "detail": status.status_sentence(row, absent),
        "at": row.sent_at,
        "raw": row.text if result == "refused" else "",
    }


def missing_object(kind: str, name: str) -> dict[str, Any]:
    text = "Not applied yet: it depends on objects that are applied first."
    return {"kind": kind, "name": name, "result": "missing", "detail": text, "at": None, "raw": ""}


def namespace_context(
    row: Namespace,
    objects: Collection[AppliedObject],
    absent: Collection[int] = (),
    unsent: Collection[tuple[str, str, str]] = (),
) -> dict[str, Any]:
    """`absent`: see cluster/apply/queries.py; `unsent`: see provisioning/queries.py."""
    return {
        "name": row.name_in_cluster,
        "wanted": row.wanted,
        "cluster": row.cluster.name,
        "settled": row.observed_generation >= row.generation,
        "error_text": row.error_text,
        "is_observed": row.error_code == WAITING,
        "origin": str(row.origin),
        "applied_as_of": row.applied_as_of,
        "objects": [
            *(applied_object(one, absent) for one in objects),
            *(missing_object(kind, name) for kind, _namespace, name in unsent),
        ],
        "counts": ", ".join(
            filter(None, [result_counts(objects, absent), f"{len(unsent)} not applied" if unsent else ""])
        ),
    }


def result_counts(rows: Collection[AppliedObject], absent: Collection[int] = ()) -> str:
    """`14 applied, 1 rejected`."""
    found = Counter(result_of(row, absent) for row in rows)
    return ", ".join(f"{found[one]} {STATUSES[one].word.lower()}" for one in status.STATUSES if found[one])
