"""What an explanation promises agrees with its phase, verdict, estimate, suggested actions and with who acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from cluster.reads.observed import AsOf
from tests.workloads.cases.advice import FULL
from tests.workloads.cases.cluster_objects import NOW, WISH
from tests.workloads.cases.problem_status import wish_of
from tests.workloads.cases.problems import FORBIDDEN, LIMITS, PROBLEMS, VIOLATES
from tests.workloads.status.explain.messages import MESSAGES
from tests.workloads.status.test_queue_holds import CASES
from workloads.advice.advice import NEVER, NOT_YET, advice
from workloads.core.observation import Observation
from workloads.status.desired_run import DesiredRun
from workloads.status.estimates.estimate import WaitReason
from workloads.status.estimates.queries import wait_reason
from workloads.status.explain.types import Who, who_acts
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

SOON = re.compile(
    r"automatically|starts when|continues when|retries|restarts|in a moment|Wait a moment|wait until|if this continues"
)
# A rejected Job, by the text of the API server.
REJECTED = {
    "quota full": "exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, "
    "limited: requests.nvidia.com/gpu=1",
    "quota too small": "exceeded quota: other, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, "
    "limited: requests.nvidia.com/gpu=1",
    "quota starting": "status unknown for quota: gpu-portal, resources: requests.nvidia.com/gpu",
    "limits": LIMITS,
    "Pod Security": VIOLATES,
    "webhook": 'admission webhook "images.example.org" denied the request: the image is not signed',
    "webhook down": 'failed calling webhook "images.example.org": failed to call webhook: connection refused',
    "policy": "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: spec.template.spec.nodeName is set",
    "other": "something new",
}


def of_wish(wish: DesiredRun, seen: Observation, as_of: AsOf | None = None) -> Callable[[], Status]:
    return lambda: status_of(wish, seen, now=NOW, as_of=as_of)


SINCE = NOW - timedelta(minutes=2)
EVERYONE_SILENT = AsOf(NOW, True, silent=dict.fromkeys(("kueue", "scheduler", "controllers"), SINCE))
HELD = "Scheduling of A100 has been paused."
ALL: dict[str, Callable[[], Status]] = {
    **{f"problem: {one.name}": of_wish(wish_of(one), one.seen) for one in PROBLEMS},
    **{f"silent: {one.name}": of_wish(wish_of(one), one.seen, EVERYONE_SILENT) for one in PROBLEMS},
    **{f"held: {one.name}": of_wish(replace(wish_of(one), hold=HELD), one.seen) for one in PROBLEMS},
    **{f"message: {one.text[-50:]}": of_wish(WISH, one.seen) for one in MESSAGES},
    **{f"case: {name}": (lambda told=told[0]: told) for name, told in CASES.items()},
    **{
        f"rejected: {name}": of_wish(replace(WISH, sent="refused", sent_text=f"{FORBIDDEN}{text}"), Observation())
        for name, text in REJECTED.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_verdict_agrees_with_every_sentence_beside_it(name: str) -> None:
    told = ALL[name]()
    explained = told.explained
    found = advice(told, FULL)
    verdict = found.verdict if found is not None else ""
    if explained is None:
        assert verdict != NEVER
        return
    said = f"{told.sentence} {explained.remedy}"
    assert told.sentence == explained.sentence or told.sentence.startswith(explained.sentence)
    who = who_acts(told.reason)
    assert who is not Who.UNKNOWN or told.reason in UNSAID
    if explained.is_final:
        assert told.phase in (Phase.BLOCKED, Phase.FAILED)
        assert not re.search(r"automatically|in a moment", said), said
        # The estimate has the figures of the grants, and then says that it is too large.
        assert wait_reason(told) in (None, WaitReason.NEVER) or told.reason == "exceeds_maximum"
        assert verdict in ("", NEVER) or told.phase is Phase.FAILED
        assert who is not Who.NOBODY
        assert not found or all(step.verb != "wait" for step in found.steps)
    else:
        assert verdict != NEVER
        assert wait_reason(told) is not WaitReason.NEVER
    if who is Who.NOBODY and told.phase is not Phase.FAILED:
        assert SOON.search(said) or told.phase is Phase.PREPARING, said
    if verdict == NOT_YET:
        assert who is not Who.OPERATORS or SOON.search(said), said
    if who is Who.OPERATORS:
        assert re.search(r"operator", said), said


# Kueue's message is not known, or says only that the run waits.
UNSAID = {"queued", "cluster_not_read"}
