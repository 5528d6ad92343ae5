"""What the cluster said of a class's device class and selector, as text for operators. Pure."""

from __future__ import annotations

from catalog.models import DeviceTrial

Verdict = DeviceTrial.Verdict
_NOT_TRIED = "Not tried on the cluster yet."


def counted_text(trial: DeviceTrial | None, resource: str) -> str:
    """`resource`: that of the class."""
    if trial is None:
        return _NOT_TRIED
    if trial.verdict == Verdict.NOT_COUNTED:
        return "Kueue does not count it: workloads would never start."
    if trial.verdict == Verdict.COUNTED:
        wrong = "" if trial.resource == resource else f", not as {resource}: workloads would never start"
        return f"Kueue counts it as {trial.resource}{wrong}."
    return f"It is not known whether Kueue counts it. {trial.text}".strip()


def selector_text(trial: DeviceTrial | None) -> str:
    if trial is None:
        return _NOT_TRIED
    return {
        Verdict.REFUSED: f"The API server refuses it: {trial.text}",
        Verdict.FAILED: f"It fails on a device of the cluster: {trial.text}",
        Verdict.NO_DEVICE: "No device of the cluster matches it.",
        Verdict.COUNTED: "The API server accepts it, and a device of the cluster matches it.",
        Verdict.NOT_COUNTED: "The API server accepts it.",
        Verdict.ACCEPTED: "The API server accepts it.",
    }.get(Verdict(trial.verdict), f"It is not known whether the cluster accepts it. {trial.text}".strip())
