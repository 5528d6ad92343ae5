"""The status of each object that a row wants in the cluster, and the sentence for it."""

from __future__ import annotations

from collections.abc import Collection

from cluster.apply import messages
from cluster.apply.types import FAILED, NOT_REPAIRED, REPAIRED
from cluster.models import AppliedObject

# All states, in the order in which a sentence counts them.
STATUSES = ("applied", "repaired", "refused", "foreign", "missing", "drifted", "terminating")

# Codes that change the status.
STATUS_CODES = (REPAIRED, NOT_REPAIRED)

Result = AppliedObject.Result


def object_status(row: AppliedObject, absent: Collection[int] = ()) -> str:
    """`absent`: the result of `missing_objects`."""
    if row.code == NOT_REPAIRED:
        return "drifted"
    if row.result != Result.APPLIED:
        return str(row.result)
    if row.difference.get("gone") or row.pk in absent:
        return "missing"
    return "drifted" if row.difference else "repaired" if row.code == REPAIRED else "applied"


def status_sentence(row: AppliedObject, absent: Collection[int] = ()) -> str:
    """Returns a sentence about the status; "" where the status alone is enough."""
    if row.code in (NOT_REPAIRED, FAILED):
        return row.text
    match object_status(row, absent):
        case "refused":
            return messages.refusal_sentence(row.code, row.text)
        case "terminating":
            return "It was deleted and will be recreated."
        case "missing" if not row.difference:
            return "It was applied, but the cluster does not have it. It will be applied again within a day."
        case "drifted" | "missing":
            return messages.drift_sentence(row.difference)
    return row.text
