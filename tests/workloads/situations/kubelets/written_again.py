"""What ends a pod so that its Job starts another one, which ends in the same way: see cases/situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, Situation
from tests.workloads.situations.kubelets.written import CHANGE, NODE, WAIT

REPLACED = "kubelets/test_again_live::test_what_ends_each_pod"
AGAIN = r"Kubernetes restarts it automatically\."
OFTEN, LOST = "If it happens again, contact an operator.", "Unsaved work is lost"

ENDINGS: dict[str, Situation] = {
    "device_plugin_down": Situation(
        REPLACED, "preparing", "device_plugin_down",
        rf"Node {NODE} rejected the pod: the device plugin for nvidia\.com/gpu is not running there\. {AGAIN}",
        NOT_YET, WAIT, OFTEN, "share_limit",
        then="runs when the device plugin is running", facts={"resource": "nvidia.com/gpu"},
    ),
    "share_limit": Situation(
        REPLACED, "blocked", "share_limit",
        rf"Node {NODE} gives a container at most 1 unit of a shared GPU; 2 are requested\. Kubernetes repeats it "
        r"without success\.",
        NEVER, "fewer_units", "starts now", "device_plugin_down",
        facts={"asked": 2, "limit": 1},
    ),
    "node_changed": Situation(
        REPLACED, "preparing", "node_changed",
        rf"Node {NODE} rejected the pod: the labels of the node have changed\. {AGAIN}",
        NOT_YET, WAIT, OFTEN, "node_refused",
        then="runs on a node with the labels of the class",
    ),
    "node_refused": Situation(
        REPLACED, "preparing", "node_refused",
        rf"Node {NODE} rejected the pod \(UnsupportedPodSpec\)\. {AGAIN}",
        NOT_YET, WAIT, OFTEN, "node_changed",
        then="runs when the node accepts it",
    ),
    "node_pressure": Situation(
        REPLACED, "preparing", "node_pressure",
        rf"Node {NODE} rejected the pod: it reports DiskPressure\. {AGAIN}",
        NOT_YET, WAIT, OFTEN, "evicted",
        then="runs when the node has room",
    ),
    "node_full": Situation(
        REPLACED, "preparing", "node_full",
        rf"Node {NODE} rejected the pod: cpu: 8 cores requested, 62 of 64 used\. {AGAIN}",
        NOT_YET, WAIT, OFTEN, "node_pressure",
        then="runs when the node has room", facts={"resource": "cpu", "asked": 8, "used": 62, "limit": 64},
    ),
    "node_shutdown": Situation(
        REPLACED, "preparing", "node_shutdown",
        rf"Node {NODE} was shut down\. {AGAIN}",
        NOT_YET, WAIT, LOST, "disrupted",
        then="runs on a node that works",
    ),
    "disrupted": Situation(
        REPLACED, "preparing", "disrupted",
        rf"The pod was removed from node {NODE} \(DeletionBySomething\)\. {AGAIN}",
        NOT_YET, WAIT, LOST, "node_shutdown",
    ),
    "evicted": Situation(
        REPLACED, "preparing", "evicted",
        rf"Node {NODE} ran low on memory \(52 MiB left\) and evicted it: it used 12 GiB, 8 GiB were requested\. "
        rf"{AGAIN}",
        NOT_YET, WAIT, LOST, "node_pressure",
        then="runs when the node has memory",
    ),
    "too_many_files": Situation(
        REPLACED, "preparing", "too_many_files",
        rf"It wrote more than 2 GiB to /dev/shm, and node {NODE} evicted it\. {AGAIN}",
        NOT_YET, CHANGE, "Write less there, or request more", "evicted",
        then="runs with more shared memory", facts={"resource": "shared-memory"},
    ),
}  # fmt: skip
