"""What can hold work up in a cluster: what is said of each, and what helps, written down before the code that says it.

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
    """`live`: module of this folder and test. `sentence`: a pattern for the whole of it; `facts`: among those told.

    `step` and `why`: of the first next step, `why` a part. `then`: what following it comes to in the live test: the
    work runs, or why that is not possible. `neighbour`: who looks alike in the same scene and must differ in its
    reason, another situation or what it is.
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
    """Fails where what is told is not what was written."""
    assert (str(told.phase), told.reason) == (written.phase, written.reason), told
    assert re.fullmatch(written.sentence, told.sentence), (written.sentence, told.sentence)
    assert {name: told.facts.get(name) for name in written.facts} == dict(written.facts)
    assert help_ is not None, "something helps"
    first = help_.steps[0]
    assert (help_.verdict, first.verb) == (written.verdict, written.step), help_
    assert written.why in first.why, (written.why, first.why)
