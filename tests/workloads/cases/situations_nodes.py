"""What nodes, pods and storage hold up: see situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, OVER, STUCK, Situation

NODES = "test_situations_nodes_live::test_what_nodes_hold_up"
PODS = "test_situations_pods_live::test_what_pods_and_storage_hold_up"
LOST = "test_problems_live::test_a_node_that_is_lost_and_comes_back"
WAITS = "queued"
TELL = "tell_operators"

ON_NODES: dict[str, Situation] = {
    "untolerated taint": Situation(
        NODES, WAITS, "no_node_matches",
        r"None of the nodes of Tainted takes it now: 1 is kept for other work\.",
        STUCK, TELL, "1 is kept for other work", "cordoned",
        then="runs when the operators have taken the taint away",
        facts={"nodes": 1},
    ),
    "wrong selector": Situation(
        NODES, WAITS, "no_node_matches",
        r"No node of the cluster has the labels of Elsewhere\.",
        STUCK, TELL, "has the labels of Elsewhere", "cordoned",
        then="runs when the operators have labelled a node",
        facts={"nodes": 0},
    ),
    "cordoned": Situation(
        NODES, WAITS, "nodes_closed",
        r"None of the nodes of Closed takes it now: 1 is closed for new work\.",
        NOT_YET, "wait", "when a node is opened again", "untolerated taint",
        facts={"nodes": 1},
    ),
    "contiguity": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Spread free right now: 2 are free, but at most 1 on one node\.",
        NOT_YET, "fewer_units", "1 free now on one node; starts at once", "predecessor still ending",
        facts={"units": 2, "free_units": 2, "most_on_one_node": 1},
    ),
    "predecessor still ending": Situation(
        NODES, "preparing", "previous_ending",
        r"Assigned; the previous pod on these cards is still ending: 2 units of Ending are held on the node "
        r"ending-1-\w+ until it is gone\.",
        NOT_YET, "wait", "It starts when that is gone", "contiguity",
        facts={"units": 2, "ending_units": 2},
    ),
    "cpu short": Situation(
        NODES, WAITS, "no_cpu_or_memory",
        r"Units of Cores are free, but too little cpu is left beside them: 3 cores asked, at most 1 on one node\.",
        NOT_YET, "change", "One node has 1 core left beside free cards.", "contiguity",
        facts={"resource": "cpu", "asked": 3, "available": 1},
    ),
    "memory short": Situation(
        NODES, WAITS, "no_cpu_or_memory",
        r"Units of Memory are free, but too little memory is left beside them: 6 GiB asked, at most 3 on one node\.",
        NOT_YET, "change", "One node has 3 GiB left beside free cards.", "contiguity",
        facts={"resource": "memory", "asked": 6, "available": 3},
    ),
    "DRA class missing": Situation(
        NODES, WAITS, "device_class_missing",
        r"The cluster has no device class none-\w+, whose devices Nodra gives out\.",
        STUCK, TELL, "has no device class", "DRA devices short",
        then="the operators install its driver and have Kueue count it, which no test can undo",
    ),
    "DRA devices short": Situation(
        # Blocked when it is so for longer than 15 s.
        NODES, "preparing", "devices_unavailable",
        r"None of the \d+ nodes can give it the devices that it claims right now\.",
        NOT_YET, "fewer_units", "1 free now on one node; starts at once", "DRA class missing",
    ),
    "PVC unbound": Situation(
        PODS, "preparing", "volume_unbound",
        r"Waits for its volume: the storage has not provided it yet\.",
        STUCK, TELL, "volume_unbound", "PVC missing",
        then="runs when the operators have provided it",
    ),
    "PVC missing": Situation(
        PODS, "preparing", "volume_missing",
        r"Its volume gone is not in the cluster\.",
        STUCK, "change", "Choose another volume, or none", "PVC unbound",
    ),
    "image pull": Situation(
        PODS, "blocked", "image_not_found",
        r"There is no image docker\.io/library/python:3\.14-slim in its registry; the node cpu-\d+ tries again\.",
        STUCK, "change", "Check its name and tag", "configuration missing",
    ),
    "configuration missing": Situation(
        PODS, "blocked", "secret_incomplete",
        r"The secret config-1 that its container needs lacks the key secret\.MINE\.",
        NOT_YET, "wait", "The portal puts it back", "image pull",
    ),
    "crash": Situation(
        PODS, "failed", "crashed",
        r"It ended with exit code 3\.",
        OVER, "read_log", "Its last lines say most.", "OOM",
        then="a log says why; what is wrong with the work itself nobody else can mend",
        facts={"exit_code": 3},
    ),
    "OOM": Situation(
        PODS, "failed", "out_of_memory",
        r"It used more than its 1 GiB of host memory and was ended; this is not the GPU's memory\.",
        OVER, "change", "It had 1 GiB.", "crash",
        facts={"exit_code": 137, "memory_gib": 1},
    ),
    "kubelet admission": Situation(
        PODS, "preparing", "device_unavailable",
        r"The node cpu-\d+ refused it: nvidia\.com/gpu: 1 asked, 0 there\. Kubernetes starts it again by itself\.",
        NOT_YET, "wait", "If it happens again, tell the operators.", "topology",
        facts={"resource": "nvidia.com/gpu", "asked": 1, "available": 0},
    ),
    "topology": Situation(
        PODS, "preparing", "topology_refused",
        r"The node cpu-\d+ refused it: it cannot give its cards and cores close to each other\. Kubernetes starts it "
        r"again by itself\.",
        NOT_YET, "fewer_units", "starts at once", "kubelet admission",
    ),
    "node lost": Situation(
        LOST, "unknown", "node_lost",
        r"Its node own-\w+ is not heard of any more; how it does there is not known\.",
        NOT_YET, "wait", "After 5 minutes Kubernetes gives the node up", "what runs there, a moment before",
        then="runs when the node answers again",
    ),
}  # fmt: skip

# Not among those that the product promises, and staged beside them.
BESIDE: dict[str, Situation] = {
    "resource advertises 0": Situation(
        NODES, WAITS, "no_units_offered",
        r"No units of Zero are on offer: its only open node advertises 0; none of the 2 there is healthy\.",
        STUCK, TELL, "advertises 0", "units not healthy",
        then="runs when the operators have mended the device plugin",
        facts={"nodes": 1},
    ),
    "units not healthy": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Unwell free right now: 1 is free there; 1 more is not healthy\.",
        NEVER, "fewer_units", "1 free now on one node; starts at once", "resource advertises 0",
        facts={"units": 2, "free_units": 1},
    ),
    "held by work not started here": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Outside free right now: nothing of \S+ is left\.",
        NOT_YET, "wait", "It starts when one node has enough", "contiguity",
        then="runs when who started that has ended it",
        facts={"units": 2, "free_units": 0},
    ),
}  # fmt: skip
