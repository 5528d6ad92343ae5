"""The decision about a line of a request, and the line as an approver sees it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tenants.models import QuotaLine

LineState = QuotaLine.State


@dataclass(frozen=True)
class Decision:
    """The decision about one line. `units`, `starts`, `ends` None: as requested. `reason` is required for a denial.

    `grace_hours`: how long running workloads continue after the end; None: a day, or for a reduction the grace of the
    grant that is cut. `measured`: facts about the class from apps above, stored in the line with those of this app.
    """

    line_id: int
    approve: bool
    units: int | None = None
    starts: datetime | None = None
    ends: datetime | None = None
    reason: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    grace_hours: int | None = None


@dataclass(frozen=True)
class OverPromise:
    """The approver's selection and reason for an overcommit."""

    is_ticked: bool = False
    reason: str = ""


@dataclass(frozen=True)
class DecidableLine:
    """A line for a person who may decide it. `decides`: slugs of the actor's classes, also as a delegate; None: all."""

    gpu_class: str
    class_name: str
    state: str
    filed_by: int
    role: str
    decides: Collection[str] | None
    # A delegate of some approver, whatever the person's own role.
    is_deputy: bool = False
