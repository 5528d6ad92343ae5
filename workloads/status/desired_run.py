"""The part of the rows of a workload and its current run that the run's status depends on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workloads.status.explain.container_start import RegistryAccess, UnreadableSecrets
from workloads.status.failure_record import FailureRecord


@dataclass(frozen=True)
class DesiredRun:
    """A workload and its current run, from their rows. `sent` is the result of creating the Job ("" = not sent yet),
    with `sent_text`; `problem` is the code of the worker's last failure, with `problem_text`; `hold`: the sentence
    about the class while its scheduling is paused, "" otherwise; `borrowing_limit` of the class, None if unknown;
    `max_units` of the class with nodes that are added on demand, usually within `node_minutes`, None if none are;
    `volume`: its name, "" for none; `sealed`: which of the run's secrets the worker cannot decrypt. `units` are per
    worker.
    """

    kind: str
    class_name: str
    class_slug: str
    units: int
    image: str
    number: int
    requested_at: datetime
    is_deleting: bool = False
    volume: str = ""
    has_repository: bool = False
    sign_in: RegistryAccess | None = None
    sealed: UnreadableSecrets | None = None
    sent: str = ""
    sent_at: datetime | None = None
    sent_text: str = ""
    problem: str = ""
    problem_text: str = ""
    hold: str = ""
    borrowing_limit: int | None = None
    max_units: int | None = None
    node_minutes: int = 0
    stop_requested_at: datetime | None = None
    # Why it is moved off its node, as a sentence; "" otherwise.
    drain_reason: str = ""
    is_followed: bool = False
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ready_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    preemptions: int = 0
    kept: FailureRecord | None = None
    # Per worker, by resource.
    asked: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    retries: int = 0
    # The least of each device; 0: any.
    gpu_memory_gib: int = 0
    # In one domain of which all workers have to be; "": none is required.
    required_level: str = ""
