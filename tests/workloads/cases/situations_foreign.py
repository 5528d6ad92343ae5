"""Situations caused by objects and edits of others, which the portal neither made nor sets back: see situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, STUCK, Situation

FOREIGN = "test_situations_foreign_live::test_what_others_put_in_the_way"
TELL = "tell_operators"

OF_OTHERS: dict[str, Situation] = {
    "foreign scheduling gate": Situation(
        FOREIGN, "blocked", "scheduling_gated",
        r"Admitted, but the scheduler places its pod only without the scheduling gate example\.org/budget, set by a "
        r"policy of the cluster and not by the portal\.",
        STUCK, TELL, "the reason scheduling_gated", "node's pods full",
        then="runs when the policy's owner has removed the gate",
    ),
    "edited Job": Situation(
        FOREIGN, "blocked", "job_edited",
        r"Its Job was edited in the cluster, outside the portal: it creates 0 pods at a time instead of 1\.",
        STUCK, "start_again", "Stop it and start it again.", "foreign scheduling gate",
    ),
    "node's pods full": Situation(
        FOREIGN, "queued", "no_node_fits",
        r"No single node has 1 unit of Full free: nodes have reached their maximum number of pods\.",
        NOT_YET, "wait", "It starts when one node has enough free units", "foreign scheduling gate",
    ),
    "volume over quota": Situation(
        FOREIGN, "blocked", "volume_refused",
        r"The cluster rejects the volume extra\. The namespace's ResourceQuota counted \(not created by the portal\) "
        r"does not allow this object: persistentvolumeclaims: 1 requested, limit 0\.",
        STUCK, "change", "Choose another volume, or none", "PVC missing",
        facts={"quota": "counted", "resource": "persistentvolumeclaims", "asked": 1, "limit": 0},
    ),
    "no storage class": Situation(
        FOREIGN, "blocked", "volume_unbound",
        r"Waiting for the volume classless: it has no storage class, and the cluster has no default one\.",
        STUCK, TELL, "the reason volume_unbound", "volume over quota",
        then="runs when the operators have provided the volume",
    ),
    "object count at ResourceQuota": Situation(
        FOREIGN, "blocked", "quota_forbids",
        r"The namespace's ResourceQuota counted \(not created by the portal\) does not allow this object: "
        r"count/jobs\.batch: 1 requested, limit 0\.",
        NEVER, TELL, "the reason quota_forbids", "over quota at ResourceQuota",
        then="runs when the operators have changed the quota and the portal has tried again",
        facts={"quota": "counted", "resource": "count/jobs.batch", "asked": 1, "limit": 0},
    ),
}  # fmt: skip
