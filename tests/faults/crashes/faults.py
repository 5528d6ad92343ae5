"""The faults of the table in docs/faults.md, and one case of each: it strikes at one write of one operation.

Which write it is differs from fault to fault. A fault strikes once, or lasts until the end of the pass of the worker.
Whatever strikes, the end state is that of the undisturbed operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import READS, WRITES, Call, Rule
from devcluster.processes.ports import free_port
from tests.faults.crashes.stage import Outcome, Stage, Strike
from tests.faults.crashes.state import differences
from tests.faults.crashes.types import Write

Fault = Callable[[Rule], Rule]
# Shorter than in production, so that a server that does not answer costs a second.
SHORT = {"KUBE_TIMEOUT_S": 1}
# An API server that refuses is told to the owners and operators, once; the end state is the same.
OF_A_REFUSAL = re.compile(r"namespace\.refused|could not be applied")
KILLED = {"killed before a write": "before", "killed after a write": "after"}

OF_REQUESTS: dict[str, Fault] = {
    "401": lambda rule: rule.status(401),
    "403": lambda rule: rule.status(403),
    "409": lambda rule: rule.status(409),
    "422": lambda rule: rule.status(422),
    "429": lambda rule: rule.status(429),
    "500": lambda rule: rule.status(500),
    "503": lambda rule: rule.status(503),
    "connection reset": Rule.refuse,
    "connection closed before the request": Rule.drop_before,
    "answer lost": Rule.drop_answer,
    "no answer in time": lambda rule: rule.delay(1.5),
}
OF_READS: dict[str, Fault] = {
    "reads answered with 500": lambda rule: rule.status(500),
    "reads without an answer": Rule.drop_answer,
}
# Carried out in the process itself: see mortal.py.
OF_DATABASE = {
    "PostgreSQL: connection cut before a commit": "cut before",
    "PostgreSQL: connection cut after a commit": "cut after",
    "PostgreSQL: a statement times out": "timeout before",
}
OF_MAIL = {"mail server away": "mail before", "mail sent, answer lost": "mail after"}
# For one whole pass.
OF_PASS = ("API server away", "PostgreSQL away", "Redis away")

FAULTS: tuple[str, ...] = (
    *(f"{name}, {how}" for name in OF_REQUESTS for how in ("once", "for a while")),
    *OF_READS,
    *OF_DATABASE,
    *OF_MAIL,
    *OF_PASS,
    *KILLED,
)


@dataclass
class Result:
    """`cases`: how often it struck; 0 if the operation has no such write. `is_missed`: that write did not come again.
    `wrong`: differences, in words.
    """

    cases: int = 0
    wrong: list[str] = field(default_factory=list)
    is_missed: bool = False


def strike(stage: Stage, proxy: ApiProxy, operation: str, fault: str, recorded: Outcome) -> Result:
    """One case of a fault that does not kill."""
    index = FAULTS.index(fault)
    name, _, how = fault.partition(", ")
    if name in OF_REQUESTS and how in ("once", "for a while"):
        count = sum(is_request(write) for write in recorded.writes)
        is_once = how == "once"
        return _at_request(stage, proxy, operation, recorded, WRITES, count, index, OF_REQUESTS[name], is_once)
    if fault in OF_READS:
        return _at_request(stage, proxy, operation, recorded, READS, 1, index, OF_READS[fault], True)
    if fault in OF_PASS:
        return _of_pass(stage, proxy, operation, recorded, fault)
    inside = {**OF_DATABASE, **OF_MAIL}[fault]
    chosen = [write for write in recorded.writes if is_mail(write) == (fault in OF_MAIL) and not is_request(write)]
    if not chosen:
        return Result()
    write = chosen[index % len(chosen)]
    outcome = stage.case(operation, strike=Strike(write, inside))
    return Result(int(outcome.is_hit), differences(outcome.state, recorded.state), not outcome.is_hit)


def _at_request(
    stage: Stage, proxy: ApiProxy, operation: str, recorded: Outcome, verbs: frozenset[str], count: int, index: int,
    fault: Fault, once: bool,
) -> Result:  # fmt: skip
    if not count:
        return Result()
    proxy.forget()
    times, nth = 1 if once else None, 1 + index % count
    rule = fault(proxy.when(verbs, nth=nth, times=times, predicate=lambda call, _: not is_aside(call)))

    def calm_again() -> None:
        if rule.struck:
            proxy.forget()

    outcome = stage.case(operation, kubeconfig=str(proxy.kubeconfig), settings=SHORT, after_pass=calm_again)
    proxy.forget()
    is_missed = not rule.struck and verbs == WRITES
    return Result(int(rule.struck > 0), differences(untold(outcome.state), untold(recorded.state)), is_missed)


def _of_pass(stage: Stage, proxy: ApiProxy, operation: str, recorded: Outcome, fault: str) -> Result:
    """The call and the first pass of the workers are in the outage."""
    closed = free_port()
    away = f"redis://127.0.0.1:{closed}/0"
    settings: dict[str, Any] = {}
    if fault == "API server away":
        proxy.refuse()
    elif fault == "Redis away":
        settings = {"REDIS_URL": away, "CELERY_BROKER_URL": away}
    else:
        settings = {"DATABASE_PORT": closed}
    passes: list[str] = []

    def after_pass() -> None:
        passes.append("")
        if len(passes) == 2:
            proxy.resume()
            settings.clear()

    outcome = stage.case(operation, kubeconfig=str(proxy.kubeconfig), settings=settings, after_pass=after_pass)
    proxy.resume()
    return Result(1, differences(outcome.state, recorded.state))


def untold(state: dict[str, Any]) -> dict[str, Any]:
    """Without the event, the notices and the mails of one refusal. A second event of it would stay."""
    found: dict[str, Any] = {}
    for name, values in state.items():
        if isinstance(values, dict) and name.startswith("rows "):
            most = 1 if name == "rows accounts.Event" else 2
            values = {row: n for row, n in values.items() if not (OF_A_REFUSAL.search(row) and n <= most)}
        elif name == "mails":
            values = [mail for mail in values if not OF_A_REFUSAL.search(mail)]
        if values or not name.startswith("rows "):
            found[name] = values
    return found


def is_request(write: Write) -> bool:
    return write.label.startswith("API ")


def is_mail(write: Write) -> bool:
    return write.label == "mail"


def is_aside(call: Call) -> bool:
    """A dry run, or the question which cluster it is."""
    return call.dry_run or call.name == "kube-system"
