"""Runs one operation from its preparation to its end: undisturbed and recorded, killed at a write, or under a fault."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from cluster.client.kube import Kube
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from portal.core import due
from tests.faults.crashes import registry
from tests.faults.crashes.mortal import FAILED
from tests.faults.crashes.state import state, wipe
from tests.faults.crashes.types import Ground, Operation, Part, Place, Write
from tests.plugin import process_environment
from tests.support.cluster.removal import remove_from_cluster

ROOT = Path(__file__).parents[3]
PASSES = 30
LATER = timedelta(minutes=10)


class Zygote:
    """See mortal.py."""

    def __init__(self, log: Path) -> None:
        self.log = log
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.crashes.mortal"],
                cwd=ROOT,
                env={**process_environment(), "LOG_LEVEL": "CRITICAL"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )

    def run(self, **task: Any) -> int:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"log": str(self.log), **task}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True)
class Outcome:
    """`is_hit`: whether the process died at the chosen write, or the fault occurred."""

    writes: tuple[Write, ...]
    state: dict[str, Any]
    is_hit: bool


@dataclass(frozen=True)
class Strike:
    """What happens at one write: "kill before", "kill after", or what else `mortal` knows."""

    write: Write
    how: str

    def text(self) -> list[Any]:
        return [[self.write.part, self.write.label, self.write.nth], self.how]


@dataclass(frozen=True)
class Disturbance:
    strike: Strike | None
    settings: dict[str, Any]
    after_pass: Callable[[], None]

    @property
    def may_fail(self) -> bool:
        """A task may end with an exception, which Celery logs, while a service is away."""
        return bool(self.settings) or (self.strike is not None and not self.strike.how.startswith("kill"))


@dataclass
class Stage:
    """Cases of one test, one after the other on an empty database; `unique` is in the names of all their objects."""

    zygote: Zygote
    admin: Api
    kube: Kube
    kubeconfig: str
    unique: str
    directory: Path
    cases: int = 0

    def undisturbed(self, name: str) -> Outcome:
        return self.case(name)

    def case(
        self,
        name: str,
        *,
        strike: Strike | None = None,
        kubeconfig: str = "",
        settings: dict[str, Any] | None = None,
        after_pass: Callable[[], None] | None = None,
    ) -> Outcome:
        """`settings` of the processes; `after_pass`, called after the call and each pass, may change them."""
        self.cases += 1
        operation = registry.OPERATIONS[name]
        directory = self.directory / f"case-{self.cases}"
        directory.mkdir()
        wipe()
        place = Place(f"c{self.cases}-{self.unique}", self.kubeconfig, str(directory))
        calls: Callable[[str, Place], None] = lambda of, at: self._calm(of, at, "call")  # noqa: E731 - an argument
        ground = Ground(self.admin, self.kube, calls, lambda at: self._calm(name, at))
        place = replace(place, known=operation.prepare(ground, place))
        (directory / "mails").unlink(missing_ok=True)
        disturbed = replace(place, kubeconfig=kubeconfig or place.kubeconfig)
        try:
            with _told(name, strike):
                disturbance = Disturbance(strike, settings if settings is not None else {}, after_pass or _nothing)
                is_hit = self._play(name, operation, ground, disturbed, disturbance)
                found = {**state(ground, place), "more": operation.more(ground, place)}
        finally:
            operation.end(ground, place)
            remove_from_cluster(self.admin, place.name)
        return Outcome(_writes(directory / "record"), found, is_hit)

    def _play(self, name: str, operation: Operation, ground: Ground, place: Place, fault: Disturbance) -> bool:
        is_hit = False
        expected = {0, -signal.SIGKILL} | ({FAILED} if fault.may_fail else set())

        def one(part: Part) -> int:
            nonlocal is_hit
            strike = None if fault.strike is None or is_hit else fault.strike.text()
            code = self._run(name, place, part, strike=strike, settings=fault.settings)
            fault.after_pass()
            is_hit = is_hit or Path(place.directory, "struck").exists()
            return code

        for _attempt in range(4):
            if one("call") == 0:
                break
        else:
            raise AssertionError(f"the call failed four times:\n{self.zygote.log.read_text()[-4000:]}")
        for _pass in range(PASSES):
            let_time_pass()
            operation.world(ground, place)
            code = one("work")
            assert code in expected, f"a worker failed:\n{self.zygote.log.read_text()[-4000:]}"
            if code == 0 and operation.is_done(ground, place) and is_settled():
                break
        else:
            raise AssertionError(f"it never ends: {unsettled()}\n{self.zygote.log.read_text()[-3000:]}")
        operation.world(ground, place)
        self._calm(name, replace(place, kubeconfig=self.kubeconfig))
        return is_hit

    def _calm(self, name: str, place: Place, part: Part = "work") -> None:
        """A pass that is not part of the recording."""
        if part == "work":
            let_time_pass()
        code = self._run(name, place, part, record="calm")
        assert code == 0, self.zygote.log.read_text()[-4000:]

    def _run(
        self, name: str, place: Place, part: Part, *, strike: Any = None, record: str = "record", settings: Any = None
    ) -> int:
        return self.zygote.run(
            operation=name, place=asdict(place), part=part, strike=strike, settings=settings or {},
            record=str(Path(place.directory, record)),
        )  # fmt: skip


def let_time_pass() -> None:
    """Leases expire, refused objects may be retried, and rows that wait for less than some minutes are due."""
    AppliedObject.objects.update(sent_at=F("sent_at") - LATER)
    soon = timezone.now() + timedelta(hours=2)
    for model in due.due_models():
        model._base_manager.filter(due_at__lt=soon).update(due_at=Now(), leased_until=None)
        model._base_manager.exclude(leased_until=None).update(leased_until=None)


def unsettled() -> list[str]:
    return [
        f"{due.owner_label(row)} {row.generation}/{row.observed_generation} {row.error_code} {row.error_text}"
        for model in due.due_models()
        for row in model._base_manager.exclude(due_at=None).filter(
            ~Q(error_code="") | Q(observed_generation__lt=F("generation")) | Q(leased_until__isnull=False)
        )
    ]


def is_settled() -> bool:
    return not unsettled()


def _writes(record: Path) -> tuple[Write, ...]:
    lines = record.read_text().splitlines() if record.exists() else []
    return tuple(Write(*json.loads(line)) for line in lines)


@contextmanager
def _told(name: str, strike: Strike | None) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"{name}: {strike}")
        raise


def _nothing() -> None:
    """Nothing changes after a pass."""
