"""The answer to a line of a request, and the line as an approver sees it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tenants.models import QuotaLine

LineState = QuotaLine.State


@dataclass(frozen=True)
class Decision:
    """One line's answer. `units`, `starts` and `ends` None: as asked. `reason` is compulsory when it is no.

    `grace_hours`: how long what runs at the end goes on; None: a day, and where units are taken back as the grant that
    is cut states. `measured`: facts about the class that apps above know, kept with the line beside those of this app.
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
    """A line as somebody meets it who may decide it. `decides`: slugs of the actor's classes, also as a delegate, None
    for all of them.
    """

    gpu_class: str
    class_name: str
    state: str
    filed_by: int
    role: str
    decides: Collection[str] | None
    # Of some approver, whatever the person's own role.
    is_deputy: bool = False
