"""Expected advice for runs that wait or are stuck, written before the code that computes it.

Each case has the cause as the cluster reports it, the numbers around it, the expected verdict and first action, and a
neighbour with almost the same facts whose answer must differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.workloads.cases.cluster_objects import ADMITTED, AGO, NEEDED, NOW, OVER, SUSPENDED, WISH, job, pending
from tests.workloads.cases.problem_status import told
from tests.workloads.cases.problems import PROBLEMS
from workloads.advice.facts import AdviceFacts, ClassOption, OtherRun
from workloads.core.observation import Observation
from workloads.forecast.availability import AvailabilityFigures
from workloads.status.phase import DesiredRun, status_of
from workloads.status.types import Status

NOT_YET, NEVER, STUCK, OVER_ALREADY = "not_yet", "never", "stuck", "over"

# Four GPUs granted and all in use, one node with eight, none free; the team can use nothing else.
FIGURES = AvailabilityFigures(unit="GPU", granted=4, used=4, borrowing_limit=0, on_one_node=0)
A100 = ClassOption("a100", "A100", FIGURES, most_units=8, allocatable=16)
SLICES = replace(FIGURES, unit="slice", used=0, on_one_node=4)
SLICE = ClassOption("a100-3g", "A100 3g slice", SLICES, is_smaller=True, takes_units=2)
H100 = ClassOption("h100", "H100", replace(FIGURES, granted=2, used=0, on_one_node=2), takes_units=2)
BUSY = OtherRun("train", "Bob", {"n1": 2}, AGO, may_stop=True)
IDLE = OtherRun("notes", "Alice", {"n1": 2}, AGO, may_stop=True, idle_since=AGO)
FULL = AdviceFacts(name="one", kind="notebook", each=2, own=A100, may_change=True, may_request=True)


def problem(name: str) -> Status:
    return told(next(one for one in PROBLEMS if one.name == name))


def in_queue(message: str, wish: DesiredRun = WISH) -> Status:
    return status_of(wish, Observation(SUSPENDED, pending(message)), now=NOW)


def with_own(facts: AdviceFacts, **figures: object) -> AdviceFacts:
    assert facts.own is not None
    return replace(facts, own=replace(facts.own, figures=replace(facts.own.figures, **figures)))  # type: ignore[arg-type]


TOPOLOGY = 'topology "gpu-portal" allows to fit only 1 out of 2 pod(s)'
HELD_UNTIL = "A100 is held: new cooling."
QUOTA, MAXIMUM, SPREAD = in_queue(NEEDED), in_queue(OVER), in_queue(TOPOLOGY)
HELD = in_queue(NEEDED, replace(WISH, hold=HELD_UNTIL))
NOBODY = in_queue("ClusterQueue team-a is inactive")
NO_QUEUE = in_queue("LocalQueue gpu-portal doesn't exist")
UNHEARD = in_queue("couldn't assign flavors to pod set main: something new")
IGNORED = status_of(WISH, Observation(replace(SUSPENDED, created_at=AGO)), now=NOW)
NO_MIRROR = status_of(WISH, None, now=NOW)
GANG_QUEUED = in_queue('topology "gpu-portal" allows to fit only 2 out of 4 pod(s)')
GANG = replace(FULL, kind="job", each=2, workers=4)
POD_REFUSED = problem("no GPU free")


@dataclass(frozen=True)
class Case:
    """`to`: the address of the first action, "" for none; `why` is a part of its reason."""

    name: str
    neighbour: str
    told: Status
    facts: AdviceFacts
    verdict: str
    verb: str
    to: str
    why: str


CHANGE = "/teams/team-a/workloads/one/change"
REQUEST = "/teams/team-a/requests/new"
TELL = "tell_operators"

CASES = [
    # ---- waiting for quota ----
    Case(
        "quota in use, a smaller slice is free", "quota in use, the slice's node is full", QUOTA,
        replace(FULL, options=(SLICE, H100)), NOT_YET,
        "smaller_slice", f"{CHANGE}?class=a100-3g&units=2#choices", "4 free now on one node; starts now",
    ),
    Case(
        "quota in use, the slice's node is full", "quota in use, a smaller slice is free", QUOTA,
        replace(FULL, options=(replace(SLICE, figures=replace(SLICE.figures, on_one_node=1)), H100)), NOT_YET,
        "other_class", f"{CHANGE}?class=h100&units=2#choices", "2 free now on one node",
    ),
    Case(
        "quota in use, the other class does not take its image", "quota in use, the slice's node is full", QUOTA,
        replace(FULL, options=(replace(H100, takes_units=0),)), NOT_YET,
        "wait", "", "",
    ),
    Case(
        "one of two GPUs is left", "one of two GPUs is left, and somebody before it takes that", QUOTA,
        with_own(FULL, used=3, on_one_node=3), NOT_YET,
        "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", "Uses 4 of 4 GPUs",
    ),
    Case(
        "one of two GPUs is left, and somebody before it takes that", "one of two GPUs is left", QUOTA,
        replace(with_own(FULL, used=3, on_one_node=3, waiting=(1,), ahead=1), ahead=(1,)), NOT_YET,
        "wait", "", "1 workload of your team is ahead",
    ),
    Case(
        "an idle notebook holds enough", "only busy work holds enough", QUOTA,
        replace(FULL, others=(BUSY, IDLE)), NOT_YET,
        "stop_other", "/teams/team-a/workloads/notes", "2 GPUs, idle since",
    ),
    Case(
        "only busy work holds enough", "an idle notebook holds enough", QUOTA,
        replace(FULL, others=(BUSY,)), NOT_YET,
        "wait", "", "starts when a running workload of your team ends",
    ),
    Case(
        "an idle notebook holds too little", "an idle notebook holds enough", QUOTA,
        replace(FULL, others=(replace(IDLE, on={"n1": 1}),)), NOT_YET, "wait", "", "",
    ),
    Case(
        "an idle notebook of somebody else", "an idle notebook holds enough", QUOTA,
        replace(FULL, others=(replace(IDLE, may_stop=False),)), NOT_YET, "wait", "", "",
    ),
    Case(
        "two idle notebooks of one GPU on one node", "two idle notebooks of one GPU on two nodes", QUOTA,
        replace(FULL, others=(replace(IDLE, on={"n1": 1}), replace(IDLE, name="more", on={"n1": 1}))), NOT_YET,
        "stop_other", "/teams/team-a/workloads/notes", "together with more",
    ),
    Case(
        "two idle notebooks of one GPU on two nodes", "two idle notebooks of one GPU on one node", QUOTA,
        replace(FULL, others=(replace(IDLE, on={"n1": 1}), replace(IDLE, name="more", on={"n2": 1}))), NOT_YET,
        "wait", "", "",
    ),
    Case(
        "waits for what others leave idle", "quota in use, nothing else", QUOTA,
        with_own(replace(FULL, each=6, ahead=(1,)), borrowing_limit=4), NOT_YET,
        "wait", "", "GPUs that other teams do not use",
    ),
    Case(
        "quota in use, nothing else", "waits for what others leave idle", QUOTA,
        with_own(replace(FULL, each=4, ahead=(1,)), borrowing_limit=4), NOT_YET,
        "wait", "", "1 workload of your team is ahead",
    ),
    # ---- several workers ----
    Case(
        "two of four workers fit, on two nodes", "two of four workers fit, and the team has GPUs for one", GANG_QUEUED,
        with_own(GANG, granted=8, used=4, on_one_node=3, free_on=(3, 2)), NOT_YET,
        "fewer_workers", f"{CHANGE}?class=a100&units=2&workers=2#id_workers", "2 workers of 2 GPUs: uses 8 of 8 GPUs",
    ),
    Case(
        "two of four workers fit, and the team has GPUs for one", "two of four workers fit, on two nodes", GANG_QUEUED,
        with_own(GANG, granted=8, used=6, on_one_node=3, free_on=(3, 2)), NOT_YET,
        "fewer_workers", f"{CHANGE}?class=a100&units=2&workers=1#id_workers", "1 worker of 2 GPUs",
    ),
    Case(
        "no node has room for a worker", "two of four workers fit, on two nodes", GANG_QUEUED,
        with_own(GANG, granted=8, used=4, on_one_node=1, free_on=(1, 1, 1, 1)), NOT_YET, "wait", "", "",
    ),
    Case(
        "an idle notebook is where the last worker would be", "two of four workers fit, on two nodes", GANG_QUEUED,
        replace(
            with_own(GANG, granted=8, used=2, on_one_node=4, free_on=(4, 2, 0)), may_change=False,
            free_on={"n0": 4, "n2": 2, "n1": 0}, others=(IDLE,),
        ), NOT_YET,
        "stop_other", "/teams/team-a/workloads/notes", "Frees enough GPUs",
    ),
    Case(
        "two idle GPUs on two nodes are no place for a worker", "an idle notebook is where the last worker would be",
        GANG_QUEUED,
        replace(
            with_own(GANG, granted=8, used=2, on_one_node=4, free_on=(4, 2, 0)), may_change=False,
            free_on={"n0": 4, "n2": 2}, others=(replace(IDLE, on={"n1": 1, "n3": 1}),),
        ), NOT_YET,
        "wait", "", "",
    ),
    Case(
        "more workers than the team may have", "two of four workers fit, on two nodes", MAXIMUM,
        replace(with_own(GANG, granted=6, used=6), may_request=False, workers=4), NEVER,
        "request_quota", "", "2 GPUs more than your team's quota of 6",
    ),
    Case(
        "more workers than the nodes have GPUs", "more workers than the team may have", MAXIMUM,
        replace(with_own(GANG, granted=6, used=6), workers=9), NEVER,
        "fewer_workers", f"{CHANGE}?class=a100&units=2&workers=3#id_workers", "it starts when so many are free",
    ),
    Case(
        "workers larger than any node", "more workers than the nodes have GPUs", MAXIMUM,
        replace(with_own(GANG, granted=40, used=0), each=9), NEVER,
        "fewer_units", f"{CHANGE}?class=a100&units=8#id_units", "8 GPUs can start",
    ),
    # ---- cannot start ----
    Case(
        "more than the team may have, fewer fit now", "more than the team may have, nothing is free", MAXIMUM,
        with_own(replace(FULL, each=6), used=0, on_one_node=8), NEVER,
        "fewer_units", f"{CHANGE}?class=a100&units=4#id_units", "starts now",
    ),
    Case(
        "more than the team may have, nothing is free", "more than the team may have, fewer fit now", MAXIMUM,
        replace(FULL, each=6), NEVER,
        "request_quota", f"{REQUEST}?units-a100=2&kind-a100=boost#units-a100",
        "2 GPUs more than your team's quota of 4",
    ),
    Case(
        "more than the team may have, for a member", "more than the team may have, nothing is free", MAXIMUM,
        replace(FULL, each=6, may_request=False), NEVER, "request_quota", "", "An owner or manager of your team",
    ),
    Case(
        "more than any node has", "more than the team may have, nothing is free", MAXIMUM,
        with_own(replace(FULL, each=9), used=4, granted=8), NEVER,
        "fewer_units", f"{CHANGE}?class=a100&units=8#id_units", "can start",
    ),
    Case(
        "quota can never take the pod", "quota full", problem("quota too small"),
        with_own(replace(FULL, each=8), used=0, on_one_node=8), NEVER,
        "fewer_units", f"{CHANGE}?class=a100&units=4#id_units", "",
    ),
    # ---- nodes ----
    Case(
        "no node has two GPUs together", "no node has one GPU", SPREAD,
        with_own(FULL, used=0, on_one_node=1), NOT_YET,
        "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", "1 free now on one node",
    ),
    Case(
        "no node has one GPU", "no node has two GPUs together", SPREAD,
        with_own(FULL, used=0, on_one_node=0), NOT_YET, "wait", "", "one node has enough",
    ),
    Case(
        "no node ever had so many", "no node has one GPU", SPREAD,
        replace(with_own(FULL, used=0), own=replace(A100, figures=replace(FIGURES, used=0), most_units=1)), NEVER,
        "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", "",
    ),
    Case(
        "assigned, no GPU free", "assigned, the one before is still ending", POD_REFUSED,
        with_own(FULL, used=0, on_one_node=1), NOT_YET,
        "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", "",
    ),
    Case(
        "assigned, the one before is still ending", "assigned, no GPU free", POD_REFUSED,
        replace(with_own(FULL, used=0, on_one_node=1), ending=2), NOT_YET,
        "wait", "", "2 GPUs of A100 are in use by terminating pods",
    ),
    Case(
        "nodes closed, a slice is open", "nodes closed", problem("nodes closed"),
        replace(FULL, options=(SLICE,)), NOT_YET, "smaller_slice", f"{CHANGE}?class=a100-3g&units=2#choices", "",
    ),
    Case("nodes closed", "wrong selector", problem("nodes closed"), FULL, NOT_YET, "wait", "", "uncordoned"),
    Case("wrong selector", "nodes closed", problem("no node of its kind"), FULL, STUCK, TELL, "", "no_node_matches"),
    Case("cpu and memory short", "wrong selector", problem("no cpu and memory free"), FULL, NOT_YET, "wait", "", ""),
    Case("devices short", "wrong selector", problem("devices claimed"), with_own(FULL, used=0, on_one_node=1), NOT_YET,
         "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", ""),
    Case("volume not bound", "volume not there", problem("volume not bound"), FULL, STUCK, TELL, "", "volume_unbound"),
    Case("volume not there", "volume not bound", problem("volume not there"), FULL, STUCK, "change",
         f"{CHANGE}#id_volume", "or none"),
    # ---- queue ----
    Case("class held, a slice is open", "class held", HELD, replace(FULL, options=(SLICE,)), NOT_YET,
         "smaller_slice", f"{CHANGE}?class=a100-3g&units=2#choices", ""),
    Case("class held", "queue inactive", HELD, with_own(FULL, held=HELD_UNTIL), NOT_YET, "wait", "", "resumed"),
    Case("queue inactive", "class held", NOBODY, FULL, STUCK, TELL, "", "queue_held"),
    Case("local queue missing", "queue inactive", NO_QUEUE, FULL, NOT_YET, "wait", "", "the portal creates it"),
    Case("suspended without a place in the queue", "local queue missing", IGNORED, FULL, STUCK, TELL, "",
         "not_in_queue"),
    Case("text that nobody knows", "local queue missing", UNHEARD, FULL, STUCK, TELL, "", "queued"),
    Case("taken back", "taken by the own team", problem("preempted in the queue"), FULL, NOT_YET, "wait", "",
         "restarts automatically"),
    Case("taken by the own team", "taken back", problem("preempted by the team"), replace(FULL, others=(IDLE,)),
         NOT_YET, "stop_other", "/teams/team-a/workloads/notes", "started by Alice"),
    # ---- pod refused by the API server ----
    Case("quota full", "quota can never take the pod", problem("quota full"), FULL, NOT_YET, "wait", "",
         "terminating pod is gone"),
    Case("limits", "Pod Security", problem("cpu over the limits"), FULL, NEVER, "change", f"{CHANGE}#id_cpu", "4"),
    Case("Pod Security", "limits", problem("Pod Security"), FULL, NEVER, TELL, "", "pod_security"),
    Case("webhook down", "Pod Security", problem("webhook does not answer"), FULL, NOT_YET, "wait", "",
         "automatically"),
    Case("namespace goes", "webhook down", problem("namespace goes"), FULL, NEVER, TELL, "", "namespace_ending"),
    # ---- problems on the node ----
    Case("image not there", "registry silent", problem("image not found"), FULL, STUCK, "change",
         f"{CHANGE}#id_image", "another image"),
    Case("registry silent", "image not there", problem("registry does not answer"), FULL, NOT_YET, "wait", "", ""),
    Case("image not there, for a stranger to it", "image not there", problem("image not found"),
         replace(FULL, may_change=False), STUCK, "change", "", "The person who launched it"),
    Case("sealed for another key", "configuration missing", problem("worker with another key"), FULL, STUCK,
         "put_secrets", "/teams/team-a/secrets", ""),
    Case("configuration missing", "sealed for another key", problem("key missing"), FULL, NOT_YET, "wait", "",
         "the portal restores it"),
    Case("container not set up", "configuration missing", problem("container not set up"), FULL, STUCK, TELL, "",
         "container_config"),
    Case("kubelet refuses", "topology of the node", problem("device gone"), FULL, NOT_YET, "wait", "", ""),
    Case("topology of the node", "kubelet refuses", problem("topology"), with_own(FULL, used=0, on_one_node=8),
         NOT_YET, "fewer_units", f"{CHANGE}?class=a100&units=1#id_units", ""),
    Case("node silent", "no mirror", problem("node silent"), FULL, NOT_YET, "wait", "", "After 5 minutes"),
    Case("no mirror", "node silent", NO_MIRROR, FULL, STUCK, TELL, "", "cluster_not_read"),
    # ---- ended ----
    Case("crash", "host memory", problem("crash"), FULL, OVER_ALREADY, "read_log", "/live/logs/team-a/one", ""),
    Case("host memory", "crash", problem("host memory"), FULL, OVER_ALREADY, "change", f"{CHANGE}#id_memory_gib",
         "16 GiB"),
]  # fmt: skip

# Nothing blocks it: no advice is needed.
NOTHING = [
    status_of(WISH, Observation(job(), ADMITTED), now=NOW),
    status_of(replace(WISH, sent=""), Observation(), now=NOW),
]
