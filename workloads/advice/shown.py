"""Suggested actions as pages and the API show them, with links as addresses. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.advice.advice import Advice

# The number of steps per workload where several workloads are listed.
SHOWN_IN_LISTS = 2


@dataclass(frozen=True)
class StepLine:
    """`href` is "" if there is no page to open."""

    verb: str
    label: str
    why: str
    href: str


@dataclass(frozen=True)
class AdviceView:
    """Suggested actions for one workload."""

    name: str
    verdict: str
    said: str
    steps: tuple[StepLine, ...]
    findings: tuple[str, ...]

    @property
    def best(self) -> tuple[StepLine, ...]:
        return self.steps[:SHOWN_IN_LISTS]


def advice_view(name: str, advice: Advice, tenant: str) -> AdviceView:
    lines = tuple(
        StepLine(step.verb, step.label, step.why, step.way.href(tenant) if step.way else "") for step in advice.steps
    )
    return AdviceView(name, advice.verdict, advice.said, lines, advice.findings)
