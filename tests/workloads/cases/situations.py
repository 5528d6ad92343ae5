"""Situations that block work in a cluster: the expected status and advice, written before the code that computes them.

Each is staged on the real control plane by its `live` test, which compares with `as_written`, beside a neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workloads.advice.shown import AdviceView
from workloads.status.types import Status

NOT_YET, NEVER, STUCK, OVER = "not_yet", "never", "stuck", "over"


@dataclass(frozen=True)
class Situation:
    """`live`: module of this folder and test. `sentence`: a pattern for the whole sentence; `facts`: a part of the
    facts.

    `step` and `why`: verb and a part of the reason of the first next step. `then`: the result of that step in the live
    test: the work runs, or why it cannot. `neighbour`: a similar run in the same scene whose reason must differ; the
    name of another situation or a description.
    """

    live: str
    phase: str
    reason: str
    sentence: str
    verdict: str
    step: str
    why: str
    neighbour: str
    then: str = "runs"
    facts: Mapping[str, Any] = field(default_factory=dict)


def as_written(written: Situation, told: Status, help_: AdviceView | None) -> None:
    """Fails if the reported status or advice differs from the written situation."""
    assert (str(told.phase), told.reason) == (written.phase, written.reason), told
    assert re.fullmatch(written.sentence, told.sentence), (written.sentence, told.sentence)
    assert {name: told.facts.get(name) for name in written.facts} == dict(written.facts)
    assert help_ is not None, "something helps"
    first = help_.steps[0]
    assert (help_.verdict, first.verb) == (written.verdict, written.step), help_
    assert written.why in first.why, (written.why, first.why)
