"""Situations in which the API server refuses a Job or its pod: see cases/situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, Situation

REFUSED = "refusals/test_refused_live::test_what_the_api_server_refuses"
TELL = "tell_operators"

REFUSALS: dict[str, Situation] = {
    "below LimitRange": Situation(
        REFUSED, "blocked", "below_limit_range",
        r"The namespace's LimitRange rejects the pod: cpu per container: 1 core requested, minimum 2\.",
        NEVER, "change", "The minimum is 2 cores", "LimitRange",
        facts={"resource": "cpu", "asked": 1, "limit": 2},
    ),
    "unknown refusal of the pod": Situation(
        REFUSED, "blocked", "pod_refused",
        r"The cluster rejected the pod\.",
        NEVER, TELL, "the reason pod_refused", "policy of the site",
        then="runs when the operators have taken the policy away",
    ),
    "unknown refusal of the Job": Situation(
        REFUSED, "blocked", "refused_by_cluster",
        r"The cluster rejected the job\. Stop it, or contact an operator\.",
        NEVER, TELL, "the reason refused_by_cluster", "unknown refusal of the pod",
        then="runs when the operators have taken the policy away and the portal has tried again",
    ),
    "no service account": Situation(
        REFUSED, "preparing", "service_account",
        r"The namespace has no service account gpu-portal for the pod\.",
        NOT_YET, "wait", "the portal restores it", "unknown refusal of the pod",
    ),
    "quota not counted": Situation(
        REFUSED, "preparing", "quota_starting",
        r"The usage of the namespace's ResourceQuota uncounted is not known yet\.",
        NOT_YET, "wait", "It is retried automatically in a moment", "over quota at ResourceQuota",
        then="runs when the quota controller has counted",
    ),
}  # fmt: skip
