"""What Kueue and the API server said about a trial, as a verdict. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from catalog.trials.models import DeviceTrial

Verdict = DeviceTrial.Verdict
_EVALUATION = re.compile(r"CEL evaluation failed for DeviceClass \S+: (.+)", re.DOTALL)
_COMPILATION = re.compile(r"compilation failed: (?:ERROR: <input>:)?(.+?)(?:\n|$)", re.DOTALL)
_NOT_COUNTING = "Kueue admitted it without counting a device: its feature gate KueueDRAIntegration is off."


class Answer(NamedTuple):
    verdict: DeviceTrial.Verdict
    resource: str = ""
    text: str = ""


def answer_of_kueue(status: Mapping[str, Any]) -> Answer | None:
    """The status of the trial's Workload; None: Kueue has not decided yet."""
    condition = next((one for one in status.get("conditions") or [] if one["type"] == "QuotaReserved"), None)
    if condition is None:
        return None
    message = str(condition.get("message", ""))
    if condition["status"] == "True":
        return Answer(Verdict.NOT_COUNTED, text=_NOT_COUNTING)
    if "is not mapped in DRA configuration" in message:
        return Answer(Verdict.NOT_COUNTED, text=message)
    if found := _EVALUATION.search(message):
        return Answer(Verdict.FAILED, text=found[1])
    if "insufficient matching devices" in message:
        return Answer(Verdict.NO_DEVICE, text=message)
    # No other resource is counted: its pod asks for nothing but the device.
    counted = [name for one in status.get("resourceRequests") or [] for name in one.get("resources") or {}]
    if counted and condition.get("reason") == "Pending":
        return Answer(Verdict.COUNTED, resource=counted[0])
    # Anything else may be a queue that is not ready yet.
    return None


def words_of_api_server(text: str) -> str:
    """The part of a refusal that is about the expression: `1:29: found no matching overload …`; else all of it."""
    found = _COMPILATION.search(text)
    return found[1].strip() if found else text
