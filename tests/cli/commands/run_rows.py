"""Rows of runs that commands read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone

from workloads.models import Run


def becomes(**columns: Any) -> Callable[[], object]:
    """Changes the last run."""
    return lambda: Run.objects.filter(pk=Run.objects.order_by("-pk")[0].pk).update(**columns)


def ended(outcome: str, message: str, exit_code: int | None = None) -> Callable[[], object]:
    return becomes(ended_at=timezone.now(), outcome=outcome, message=message, exit_code=exit_code)
