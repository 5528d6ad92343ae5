"""Situations caused by quota, admission and the queue: see situations.py."""

from __future__ import annotations

from tests.workloads.cases.situations import NEVER, NOT_YET, STUCK, Situation

REFUSED = "test_problems_live::test_what_the_cluster_refuses"
FOREIGN = "test_situations_foreign_live::test_what_others_put_in_the_way"
QUEUE = "test_queue_live::test_a_queue_that_holds_back_what_could_start"
TELL = "tell_operators"
QUEUED, BLOCKED, PREPARING = "queued", "blocked", "preparing"
DATE = r"\d+ \w+ \d{4}, \d\d:\d\d"

HELD = "../control_plane/test_class_life::test_who_waits_for_a_held_class_reads_since_when_for_what_and_until_when"
INACTIVE = "../runs/test_disruptions_live::test_interruptions_that_are_no_preemptions"
AWAY = "test_queue_live::test_a_namespace_that_goes_and_comes_again"
SILENCE = "../../soak/silence::test_a_component_that_stops_is_told_and_then_the_run_starts"

LEVELS = "topology/test_levels_live"

IN_QUEUE: dict[str, Situation] = {
    # ---- refusals by API server, quotas and policies ----
    "over quota at ResourceQuota": Situation(
        REFUSED, PREPARING, "quota_full",
        r"Admitted, but the namespace's ResourceQuota tight \(not created by the portal\) is full: cpu: 4 cores "
        r"requested, [5-8] of 8 used\.",
        NOT_YET, "wait", "or when another workload in the namespace ends", "larger than ResourceQuota",
        facts={"quota": "tight", "resource": "cpu", "asked": 4, "limit": 8},
    ),
    "larger than ResourceQuota": Situation(
        REFUSED, BLOCKED, "quota_too_small",
        r"The request exceeds the namespace's ResourceQuota tight \(not created by the portal\): cpu: 9 cores "
        r"requested, limit 8\.",
        NEVER, "change", "The limit is 8.", "over quota at ResourceQuota",
        facts={"resource": "cpu", "asked": 9, "limit": 8},
    ),
    "LimitRange": Situation(
        REFUSED, BLOCKED, "limit_range",
        r"The namespace's LimitRange rejects the pod: cpu per container: 12 cores requested, maximum 10\.",
        NEVER, "change", "The limit is 10", "over quota at ResourceQuota",
        facts={"resource": "cpu", "asked": 12, "limit": 10},
    ),
    "Pod Security": Situation(
        "test_problems_shared_live::test_pod_security_refuses_what_a_policy_of_the_site_has_made_of_a_pod",
        BLOCKED, "pod_security",
        r"The cluster's Pod Security rules \(restricted\) reject the pod: host namespaces\.",
        NEVER, TELL, "the reason pod_security", "the same pod without what the policy adds",
        then="runs when the operators have taken the policy away",
    ),
    "webhook down": Situation(
        REFUSED, PREPARING, "admission_unavailable",
        r"The cluster's admission webhook images\.example\.org does not respond, and no pod is created without it\.",
        NOT_YET, "wait", "It is retried automatically", "admitted but pod refused",
    ),
    "admitted but pod refused": Situation(
        REFUSED, BLOCKED, "image_not_accepted",
        r"The cluster's admission policy refuse-\w+ denied the image of the pod: this image is not allowed here\.",
        NEVER, "change", "Choose an image that it allows", "webhook down",
        then="runs when the operators have taken the policy away",
    ),
    # ---- queue ----
    "local queue held": Situation(
        QUEUE, QUEUED, "queue_held",
        r"Your team's queue is paused: no workload starts, running workloads continue\.",
        STUCK, TELL, "the reason queue_held", "local queue missing",
        then="runs when the operators have opened the queue",
    ),
    "local queue missing": Situation(
        QUEUE, QUEUED, "queue_missing",
        r"Your team's queue does not exist in the cluster yet\.",
        NOT_YET, "wait", "the portal creates it", "local queue held",
    ),
    "cluster queue inactive": Situation(
        QUEUE, QUEUED, "queue_inactive",
        r"Your team's queue cannot admit workloads: it references missing AdmissionCheck\(s\): check-\w+\.",
        STUCK, TELL, "the reason queue_inactive", "local queue held",
        then="runs when the operators have made the check",
    ),
    "requeued with back-off": Situation(
        QUEUE, QUEUED, "put_back",
        rf"Requeued: the cluster's admission check check-\w+ requested a later retry\. The next retry is at "
        rf"{DATE}:\d\d\.",
        NOT_YET, "wait", "Kueue retries automatically at", "reserved, and the check has not answered",
    ),
    "API server down": Situation(
        "test_queue_live::test_an_api_server_that_does_not_respond_to_the_worker", QUEUED, "cluster_unavailable",
        r"The cluster did not respond\. Your job is saved and starts when the cluster responds\.",
        NOT_YET, "wait", "The portal retries automatically", "namespace missing",
    ),
    "observe only": Situation(
        "test_queue_live::test_a_portal_that_only_observes_the_cluster", QUEUED, "observe_only",
        r"The portal only observes the cluster and writes nothing to it\. Your job is saved\.",
        STUCK, TELL, "the reason observe_only", "API server down",
        then="runs when an operator has ended observe-only",
    ),
    "check not ready": Situation(
        QUEUE, QUEUED, "checked",
        r"Its quota is reserved; it starts when the cluster's admission check check-\w+ is ready\.",
        NOT_YET, "wait", "when the check is ready", "requeued with back-off",
        then="runs when the check is ready",
    ),
    "namespace missing": Situation(
        AWAY, QUEUED, "namespace_missing",
        r"Your team's namespace does not exist in the cluster yet\. Your job is saved and starts automatically when "
        r"possible\.",
        NOT_YET, "wait", "the portal creates it", "namespace terminating",
    ),
    "namespace ending": Situation(
        "removals/test_namespace_live::test_a_run_in_a_namespace_that_is_being_deleted", BLOCKED, "namespace_ending",
        r"Your team's namespace is being deleted from the cluster; nothing starts in it\..*",
        NEVER, TELL, "the reason namespace_ending", "namespace missing",
        then="ends with its Job",
    ),
    "class held": Situation(
        HELD, QUEUED, "class_held",
        r"Scheduling of .+ has been paused since .+ for a driver update; expected to resume at .+\.",
        NOT_YET, "wait", "when scheduling is resumed", "local queue held",
        then="runs when the operators have resumed scheduling",
    ),
    "Workload deactivated": Situation(
        INACTIVE, BLOCKED, "deactivated",
        rf"It was deactivated in the cluster by .+ at {DATE}, outside the portal: its Kueue Workload was set to "
        r"inactive\.",
        STUCK, TELL, "the reason deactivated", "cluster queue inactive",
        then="runs when the operators have set it to active",
    ),
    "moved off its node": Situation(
        "../runs/draining/test_draining_live::test_a_run_gives_up_its_node_and_keeps_its_place", QUEUED, "draining",
        r"It is being moved off its node\. Maintenance of node a100-1: new driver\.",
        NOT_YET, "wait", "queued again automatically", "Workload deactivated",
        then="runs on another node, before what was queued after it",
    ),
    "Kueue silent": Situation(
        SILENCE, BLOCKED, "kueue_silent",
        rf"The queue system \(Kueue\) has not responded since {DATE}\. No workload is admitted until it responds\.",
        STUCK, TELL, "the reason kueue_silent", "scheduler silent",
        then="runs when Kueue responds again",
    ),
    "scheduler silent": Situation(
        SILENCE, BLOCKED, "scheduler_silent",
        rf"The scheduler \(kube-scheduler\) has not responded since {DATE}\. No pod gets a node until it responds\.",
        STUCK, TELL, "the reason scheduler_silent", "controllers silent",
        then="runs when the scheduler responds again",
    ),
    "controllers silent": Situation(
        SILENCE, BLOCKED, "controllers_silent",
        rf"The controller manager \(kube-controller-manager\) has not responded since {DATE}\. No pod is created "
        r"until it responds\.",
        STUCK, TELL, "the reason controllers_silent", "Kueue silent",
        then="runs when the controllers respond again",
    ),
    "suspended without a Workload": Situation(
        QUEUE, BLOCKED, "not_in_queue",
        r"Kueue has not processed its job\. Contact an operator: Kueue may be down\.",
        STUCK, TELL, "the reason not_in_queue", "local queue missing",
        then="runs when the operators have let Kueue make its Workload",
    ),
    "flavor mismatch": Situation(
        QUEUE, BLOCKED, "flavor_mismatch",
        r"It requests nodes by an earlier definition of Own, which has changed since it was launched\.",
        NEVER, "start_again", "Start it again to use the current definition of its class", "local queue held",
    ),
    # ---- units ----
    "waiting for quota": Situation(
        "test_advice_live::test_fewer_units_another_class_and_stopping_an_idle_notebook",
        QUEUED, "waiting_for_quota",
        r"Waiting for quota: 1 unit of Own is missing; it needs 2, more than your team's quota has free\. Own "
        r"cannot be borrowed from other teams \(borrowing limit 0\), even if units are free\.",
        NOT_YET, "fewer_units", "Uses 4 of 4 GPUs; 1 free now on one node; starts now", "exceeds the maximum",
        facts={"position": 1, "units": 2, "missing_units": 1},
    ),
    "exceeds the maximum": Situation(
        "test_advice_live::test_what_can_never_start_any_more_is_asked_for_smaller",
        BLOCKED, "exceeds_maximum",
        r"3 units of Own requested, but your team may use at most 2 now\.",
        NEVER, "fewer_units", "Uses 2 of 2 GPUs; 4 free now on one node; starts now", "waiting for quota",
        facts={"units": 3, "most_units": 2},
    ),
    "borrowed then reclaimed": Situation(
        "test_problems_shared_live::"
        "test_units_are_taken_back_by_another_team_or_by_more_important_work_of_ones_own",
        QUEUED, "preempted",
        r"Preempted: its borrowed units were reclaimed by the lending team\. .+",
        NOT_YET, "fewer_units", "Uses 1 of 1 GPU; 1 free now on one node", "lower priority preempted",
        then="runs as it is when the other team's work has ended; a GPU of its own starts now",
        facts={"position": None},
    ),
    "lower priority preempted": Situation(
        "test_problems_shared_live::"
        "test_units_are_taken_back_by_another_team_or_by_more_important_work_of_ones_own",
        QUEUED, "preempted_in_team",
        r"Preempted: a workload of your team with a higher priority needed its units\. .+",
        NOT_YET, "wait", "restarts automatically", "borrowed then reclaimed",
        facts={"position": 1},
    ),
    "gang that fits only in part": Situation(
        "test_gangs_live::test_a_gang_that_fits_in_part_waits_and_starts_whole",
        QUEUED, "gang_fits_in_part",
        r"Only 3 of 4 workers with 1 unit of Own each fit on the nodes now.*",
        NOT_YET, "fewer_workers", "3 workers of 1 GPU", "a gang that fits",
        facts={"workers": 4, "fit": 3},
    ),
    "gang that requires one rack": Situation(
        f"{LEVELS}::test_a_gang_that_requires_one_rack_waits_until_one_has_room",
        QUEUED, "level_fits_in_part",
        r"Only 6 of 8 workers with 1 unit of Racked each fit in one example\.org/rack now, and the job requires that "
        r"all are in one\.",
        NOT_YET, "change", "Uses 12 of 24 GPUs; enough free now on several nodes; starts now",
        "a gang that prefers one",
        facts={"workers": 8, "fit": 6},
    ),
    "gang that is larger than a rack": Situation(
        f"{LEVELS}::test_what_a_rack_never_has_room_for_and_a_level_that_the_class_loses",
        BLOCKED, "level_fits_in_part",
        r"Only 8 of 9 workers with 1 unit of Racked each fit in one example\.org/rack now, and the job requires that "
        r"all are in one\. None has units for more than 8 workers, whether they are in use or not\.",
        NEVER, "change", "Uses 9 of 24 GPUs; enough free now on several nodes; starts now",
        "level that the class no longer has",
        facts={"workers": 9, "fit": 8},
    ),
    "level that the class no longer has": Situation(
        f"{LEVELS}::test_what_a_rack_never_has_room_for_and_a_level_that_the_class_loses",
        BLOCKED, "level_missing",
        r"Racked no longer has the topology level that it requests\.",
        NEVER, "change", "Choose another level, or none", "gang that is larger than a rack",
    ),
    # ---- cluster and mirror ----
    "namespace terminating": Situation(
        "test_queue_live::test_a_namespace_that_goes_and_comes_again",
        QUEUED, "namespace_going",
        r"Your team's namespace is being deleted from the cluster; nothing starts in it\. "
        r"Your job is saved and starts automatically when possible\.",
        NOT_YET, "wait", "when the namespace is deleted and the portal has created it again",
        "its namespace is not there",
    ),
    "stale mirror": Situation(
        "test_stale_mirror::test_a_run_that_the_watcher_never_saw_is_not_called_gone",
        "unknown", "mirror_stale",
        rf"No cluster updates since {DATE}; the status is unknown\.",
        STUCK, TELL, "the reason mirror_stale", "what runs since the watcher was there",
        then="runs, and is seen when the operators have started the watcher",
    ),
}  # fmt: skip

# Caused by objects and edits of others, which the portal neither made nor sets back.
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
    "policy of the site": Situation(
        FOREIGN, "blocked", "admission_denied",
        r"The cluster's admission policy denies-\w+ denied the pod: not on weekdays\.",
        NEVER, TELL, "the reason admission_denied", "admitted but pod refused",
        then="runs when the operators have taken the policy away",
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
