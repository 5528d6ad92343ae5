"""Situations in which a pod is removed from its node, or its node is lost: see cases/situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NOT_YET, STUCK, Situation

REMOVED = "removals/test_removed_live::test_what_removes_pods_from_nodes"
AGAIN = r"Kubernetes restarts it automatically\."

REMOVALS: dict[str, Situation] = {
    "drain": Situation(
        REMOVED, "preparing", "drained",
        rf"It was evicted from node rm-\d-\w+, as when a node is drained\. {AGAIN}",
        NOT_YET, "wait", "Unsaved work is lost", "taint that removes pods",
        then="runs on another node",
    ),
    "preemption by the scheduler": Situation(
        REMOVED, "preparing", "preempted_on_node",
        rf"A pod with a higher priority preempted it on node rm-\d-\w+\. {AGAIN}",
        NOT_YET, "wait", "Unsaved work is lost", "drain",
        then="runs when the other pod has ended",
    ),
    "node not ready": Situation(
        REMOVED, "unknown", "node_not_ready",
        r"Node rm-\d-\w+ is not ready: container runtime is down\.",
        NOT_YET, "wait", "Contact an operator if this continues", "node given up",
        then="runs when the node is ready again",
    ),
    "node given up": Situation(
        REMOVED, "unknown", "node_given_up",
        r"Its pod cannot be removed from node rm-\d-\w+, which no longer responds; another pod can only start when the "
        r"node responds again or is removed from the cluster\.",
        STUCK, "tell_operators", "the reason node_given_up", "node not ready",
        then="runs when the node is back",
    ),
}  # fmt: skip

# Staged beside them: the same reason by another cause.
ALSO: dict[str, Situation] = {
    "taint that removes pods": Situation(
        REMOVED, "preparing", "drained",
        r"A taint \(NoExecute\) of node rm-\d-\w+ removed it: the node was not ready, or an operator cleared it\. "
        rf"{AGAIN}",
        NOT_YET, "wait", "Unsaved work is lost", "preemption by the scheduler",
        then="runs when the operators have removed the taint, or on another node",
    ),
}  # fmt: skip
