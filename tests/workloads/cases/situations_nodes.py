"""Situations caused by nodes, pods and storage: see situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, OVER, STUCK, Situation

NODES = "test_situations_nodes_live::test_what_nodes_hold_up"
PODS = "test_situations_pods_live::test_what_pods_and_storage_hold_up"
LOST = "test_problems_live::test_a_node_that_is_lost_and_comes_back"
MEMORY = "devices/test_memory_live::test_the_second_run_waits_for_the_device_that_the_first_one_has"
WAITS = "queued"
TELL = "tell_operators"

ON_NODES: dict[str, Situation] = {
    "untolerated taint": Situation(
        NODES, WAITS, "no_node_matches",
        r"No node of Tainted is available: 1 is reserved for other workloads \(taint [^)]+\)\.",
        STUCK, TELL, "1 is reserved for other workloads", "cordoned",
        then="runs when the operators have taken the taint away",
        facts={"nodes": 1},
    ),
    "wrong selector": Situation(
        NODES, WAITS, "no_node_matches",
        r"No node in the cluster has the labels of Elsewhere\.",
        STUCK, TELL, "has the labels of Elsewhere", "cordoned",
        then="runs when the operators have labelled a node",
        facts={"nodes": 0},
    ),
    "cordoned": Situation(
        NODES, WAITS, "nodes_closed",
        r"No node of Closed is available: 1 is cordoned\. 2 units of Closed are free on node closed-[a-z0-9-]+, "
        r"cordoned by \S+ since \d+ \w+ \d+, \d+:\d+\.",
        NOT_YET, "wait", "when a node is uncordoned", "untolerated taint",
        facts={"nodes": 1},
    ),
    "nodes down": Situation(
        NODES, WAITS, "nodes_down",
        r"No node of Down is available: 1 is not ready\.",
        NOT_YET, "wait", "It starts when one of them is ready again", "cordoned",
        then="runs when the node is back",
        facts={"nodes": 1},
    ),
    "contiguity": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Spread free: 2 are free, at most 1 on one node\.",
        NOT_YET, "fewer_units", "1 free now on one node; starts now", "predecessor still ending",
        facts={"units": 2, "free_units": 2, "most_on_one_node": 1},
    ),
    "predecessor still ending": Situation(
        # Preparing for the first 15 s.
        NODES, "blocked", "previous_ending",
        r"Admitted, but the previous pod is still terminating: 2 units of Ending on node ending-1-\w+ are in use "
        r"until it is gone\.",
        NOT_YET, "wait", "It starts when that pod is gone", "contiguity",
        facts={"units": 2, "ending_units": 2},
    ),
    "cpu short": Situation(
        NODES, WAITS, "no_cpu_or_memory",
        r"Units of Cores are free, but their nodes have too little cpu free: 3 cores requested, at most 1 free on one "
        r"node\.",
        NOT_YET, "change", "One node with free GPUs has 1 core free.", "contiguity",
        facts={"resource": "cpu", "asked": 3, "available": 1},
    ),
    "memory short": Situation(
        NODES, WAITS, "no_cpu_or_memory",
        r"Units of Memory are free, but their nodes have too little memory free: 6 GiB requested, at most 3 free on "
        r"one node\.",
        NOT_YET, "change", "One node with free GPUs has 3 GiB free.", "contiguity",
        facts={"resource": "memory", "asked": 6, "available": 3},
    ),
    "DRA class missing": Situation(
        NODES, WAITS, "device_class_missing",
        r"The cluster has no device class none-\w+, which Nodra uses\.",
        STUCK, TELL, "has no device class", "DRA devices short",
        then="the operators install its driver and have Kueue count it, which no test can undo",
    ),
    "DRA class not counted": Situation(
        NODES, WAITS, "device_class_not_counted",
        r"Kueue does not manage quota for the device class uncounted-\w+, which Uncounted uses\.",
        STUCK, TELL, "the reason device_class_not_counted", "DRA class missing",
        then="the operators have Kueue count it, which no test can undo",
    ),
    "no devices through DRA": Situation(
        NODES, WAITS, "no_units_offered",
        r"No units of Driverless are in the cluster: no driver reports a matching device \(gpu\.nvidia\.com\)\.",
        STUCK, TELL, "the reason no_units_offered", "DRA devices short",
        then="the operators install its driver",
    ),
    "DRA devices short": Situation(
        # Preparing for the first 15 s.
        NODES, "blocked", "devices_unavailable",
        r"None of the \d+ nodes has the requested devices free\.",
        NOT_YET, "fewer_units", "1 free now on one node; starts now", "DRA class missing",
    ),
    "DRA devices of a size short": Situation(
        # Preparing for the first 15 s.
        MEMORY, "blocked", "gpu_memory_unavailable",
        r"Admitted, but no free device has at least 30 GiB: 1 of 3 does, all in use\. It holds its units meanwhile\.",
        NOT_YET, "change", "with less GPU memory it may start sooner", "DRA devices short",
        then="it runs when the other run is stopped, in the same test",
        facts={"gpu_memory_gib": 30, "units": 1, "fitting_units": 1, "free_units": 0, "most_on_one_node": 0},
    ),
    "PVC unbound": Situation(
        # Preparing for the first 15 s.
        PODS, "blocked", "volume_unbound",
        r"Waiting for the volume [\w-]+: the storage system has not provisioned it yet(?: \(storage class \S+\)|; its "
        r"storage class \S+ does not exist in the cluster)\.",
        STUCK, TELL, "volume_unbound", "PVC missing",
        then="runs when the operators have provided it",
    ),
    "PVC missing": Situation(
        # Preparing for the first 15 s.
        PODS, "blocked", "volume_missing",
        r"The volume gone does not exist in the cluster\.",
        STUCK, "change", "Choose another volume, or none", "PVC unbound",
    ),
    "PVC elsewhere": Situation(
        # Preparing for the first 15 s.
        PODS, "blocked", "volume_elsewhere",
        r"Admitted, but none of the \d+ nodes matches: \d+ cannot access the volume.*\. The volume is away\.",
        STUCK, "change", "Start it with another volume", "PVC missing",
    ),
    "image pull": Situation(
        PODS, "blocked", "image_not_found",
        r"The image docker\.io/library/python:3\.14-slim was not found in its registry; node cpu-\d+ retries\.",
        STUCK, "change", "Choose another image, and contact an operator", "configuration missing",
    ),
    "slow pull": Situation(
        "test_problems_shared_live::test_an_image_that_takes_long_is_told_with_its_size_and_where_it_is_already",
        "preparing", "image_slow",
        r"On own-\w+-1: pulling the image \(3\.0 GiB\) since .+, for more than 5 minutes; 2 other nodes "
        r"already have it\.",
        NOT_YET, "wait", "The first pull of a large image", "image pull",
        then="runs when the image is there", facts={"image_mib": 3072, "nodes_with_image": 2},
    ),
    "credentials refused": Situation(
        "../credentials/test_registries_live::test_a_refused_pull_says_whether_the_team_signs_in",
        "blocked", "credentials_refused",
        r"The registry registry\.example\.org denied access to the image registry\.example\.org/vision/train:7 with "
        r"the team's credentials: they are wrong, expired or have no permission, or the repository does not exist\.",
        STUCK, "put_credentials", "An owner or manager can replace the credentials", "image pull",
    ),
    "configuration missing": Situation(
        PODS, "blocked", "secret_incomplete",
        r"The secret config-1 that the container needs has no key secret\.MINE\.",
        NOT_YET, "wait", "the portal restores it", "image pull",
    ),
    "secret missing": Situation(
        PODS, "blocked", "secret_missing",
        r"The secret robbed-1 that the container needs does not exist in the cluster\.",
        NOT_YET, "wait", "the portal creates it", "configuration missing",
    ),
    "crash": Situation(
        PODS, "failed", "crashed",
        r"It ended with exit code 3\.",
        OVER, "read_log", "See its last lines.", "OOM",
        then="a log says why; what is wrong with the work itself nobody else can mend",
        facts={"exit_code": 3},
    ),
    "OOM": Situation(
        PODS, "failed", "out_of_memory",
        r"It exceeded its host memory limit of 1 GiB and was killed \(OOMKilled\)\. This is not GPU memory\.",
        OVER, "change", "It had 1 GiB.", "crash",
        facts={"exit_code": 137, "memory_gib": 1},
    ),
    "kubelet admission": Situation(
        PODS, "preparing", "device_unavailable",
        r"Node cpu-\d+ rejected the pod: nvidia\.com/gpu: 1 requested, 0 available\. Kubernetes restarts it "
        r"automatically\.",
        NOT_YET, "wait", "If it happens again, contact an operator.", "topology",
        facts={"resource": "nvidia.com/gpu", "asked": 1, "available": 0},
    ),
    "topology": Situation(
        PODS, "preparing", "topology_refused",
        r"Node cpu-\d+ rejected the pod: its GPUs and cores are not available on the same NUMA node\. Kubernetes "
        r"restarts it automatically\.",
        NOT_YET, "fewer_units", "starts now", "kubelet admission",
    ),
    "node lost": Situation(
        LOST, "unknown", "node_lost",
        r"Node own-\w+ no longer responds; the state of the run is unknown\.",
        NOT_YET, "wait", "After 5 minutes Kubernetes gives up on the node", "what runs there, a moment before",
        then="runs when the node answers again",
    ),
}  # fmt: skip

# These are not among the situations that the product promises to explain; they are staged beside them.
BESIDE: dict[str, Situation] = {
    "resource advertises 0": Situation(
        NODES, WAITS, "no_units_offered",
        r"No units of Zero are allocatable: its only schedulable node reports 0 of 2: the "
        r"device plugin there has stopped, or all are unhealthy\.",
        STUCK, TELL, "reports 0", "units not healthy",
        then="runs when the operators have mended the device plugin",
        facts={"nodes": 1},
    ),
    "units not healthy": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Unwell free: 1 is free on one node; 1 more is unhealthy\.",
        NEVER, "fewer_units", "1 free now on one node; starts now", "resource advertises 0",
        facts={"units": 2, "free_units": 1},
    ),
    "held by work not started here": Situation(
        NODES, WAITS, "no_node_fits",
        r"No single node has 2 units of Outside free: no \S+ is free\.",
        NOT_YET, "wait", "It starts when one node has enough", "contiguity",
        then="runs when who started that has ended it",
        facts={"units": 2, "free_units": 0},
    ),
}  # fmt: skip
