"""What is kept of a failed run: the text that explains its end, and the steps it completed. Pure.

Events expire after an hour, and the pod is deleted with its Job; the Run stays. The record has a maximum size and no
secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.ops.redaction import SecretRedactor
from workloads.status.explain.types import Explanation

# A kubelet reports 2 KiB of a container's last lines, and as much of its own message.
RAW_LIMIT = 6000
CUT = "… (beginning truncated)\n"
NOTE_LIMIT = 300


@dataclass(frozen=True)
class CompletedStep:
    """A completed step of progress.steps, by its title."""

    title: str
    at: datetime | None
    note: str = ""


@dataclass(frozen=True)
class FailureRecord:
    told: Explanation
    reached: tuple[CompletedStep, ...] = ()


def failure_record_json(kept: FailureRecord, *, secrets: tuple[str, ...] = ()) -> dict[str, Any]:
    """`secrets`: values of the run's own secrets. They are hidden wherever they appear, as is text that looks like a
    secret.
    """
    told, clean = kept.told, SecretRedactor(secrets).text
    return {
        "reason": told.reason,
        "sentence": clean(told.sentence),
        "remedy": told.remedy,
        "raw": _end_of(clean(told.raw)),
        "raw_from": told.raw_from,
        "actions": list(told.actions),
        "facts": dict(told.facts),
        "is_known": told.is_known,
        "reached": [
            {"title": one.title, "at": one.at.isoformat() if one.at else None, "note": clean(one.note)[:NOTE_LIMIT]}
            for one in kept.reached
        ],
    }


def failure_record_from_json(record: Mapping[str, Any]) -> FailureRecord | None:
    """Returns None for a run without a record: it did not fail, or its pod was not seen."""
    if not record:
        return None
    told = Explanation(
        record["reason"],
        record["sentence"],
        record["remedy"],
        record["raw"],
        record["raw_from"],
        is_final=True,
        actions=tuple(record["actions"]),
        facts=record["facts"],
        # Records of earlier versions do not have it.
        is_known=record.get("is_known", True),
    )
    return FailureRecord(
        told, tuple(CompletedStep(one["title"], _moment(one["at"]), one["note"]) for one in record["reached"])
    )


def _end_of(text: str) -> str:
    """Keeps the last lines: they usually explain the failure."""
    return text if len(text) <= RAW_LIMIT else CUT + text[len(CUT) - RAW_LIMIT :]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
