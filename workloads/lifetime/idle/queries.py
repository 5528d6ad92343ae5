"""The observed activity of a notebook in words, and the time until which it is kept."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from workloads.lifetime.idle import policy as idle_policy
from workloads.models import NotebookWatch


def kept_until(watch: NotebookWatch | None) -> datetime | None:
    """Returns None also if that time has passed."""
    if watch is None or watch.kept_until is None or watch.kept_until <= timezone.now():
        return None
    return watch.kept_until


def evidence_text(watch: NotebookWatch) -> str:
    """Returns a list of facts; "" before the first answer."""
    if watch.answered_at is None:
        return ""
    return idle_policy.evidence_sentence(watch.evidence, last_activity=watch.last_activity, asked_at=watch.answered_at)
