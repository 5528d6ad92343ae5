"""What goes on when the everyday demo starts: four teams with running workloads, one workload queued for each reason,
and requests for the approver. Done with the portal's own actions by the users who would do it. Needs Django.

Team A has a running notebook and quota for MIG slices only, so that its owner can request whole GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from devcluster.demo.sample import launching, quota_setup
from devcluster.demo.sample.sample_classes import A100, GAUDI, H100, MI300X, SLICE, XE, Names

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from workloads.launch.types import LaunchSpec

# Images below these prefixes do not exist; the simulated kubelet starts them all except this one.
PREFIXES = {"vision": "registry.example.org/vision/", "speech": "registry.example.org/speech/"}
NOT_IN_REGISTRY = "registry.example.org/speech/diarization:2.0-rc1"
# (team, who, name, kind, class, units, image)
RUNNING = (
    ("team-a", "bob", "lecture-3", "notebook", SLICE, 1, "JupyterLab"),
    ("team-c", "charlie", "replica-1", "job", A100, 4, "PyTorch"),
    ("vision", "erin", "segmentation", "job", A100, 4, "PyTorch"),
    ("vision", "erin", "video-decode", "job", XE, 4, "registry.example.org/vision/decode:1.4"),
    ("speech", "frank", "asr-english", "job", A100, 2, "PyTorch"),
    ("speech", "frank", "asr-french", "job", A100, 1, "PyTorch"),
    ("speech", "frank", "tts", "job", MI300X, 2, "PyTorch for AMD"),
    ("speech", "frank", "diarization", "job", A100, 1, NOT_IN_REGISTRY),
)
# The same, in the order of their launches. Reasons: the team's quota is in use; another workload is ahead; no GPU is
# free (the class is overcommitted); an operator paused the class.
QUEUED = (
    ("vision", "erin", "ablation-1", "job", A100, 2, "PyTorch"),
    ("vision", "erin", "ablation-2", "job", A100, 2, "PyTorch"),
    ("speech", "frank", "xe-benchmark", "job", XE, 2, "registry.example.org/speech/bench:3"),
    ("speech", "frank", "gaudi-port", "job", GAUDI, 1, "registry.example.org/speech/gaudi:1"),
)
HELD_BECAUSE, HELD_HOURS = "Firmware update of the Gaudi node", 20
OVERCOMMITTED_TO = 8  # units of XE that may be allocated to teams; the node has 4


def create_activity(by: Callable[[str], Actor], names: Names) -> None:
    """Creates what is missing. It runs again at each start: what exists is not changed, and a deleted workload is not
    launched again. `by`: the actor for a name of the cast.
    """
    from tenants.class_access.image_prefixes import actions as prefix_actions

    for team, prefix in PREFIXES.items():
        prefix_actions.allow_prefix(team, prefix, by=by("olga"))
    running = [one for one in RUNNING if one[4] in names]
    for team in dict.fromkeys(one[0] for one in running):
        launching.launch_all(team, [(_spec(one, names), by(one[1])) for one in running if one[0] == team])
    _hold_gaudi(by("olga"), names)
    for one in QUEUED:
        if one[4] in names:
            launching.queue(one[0], _spec(one, names), by(one[1]))
    _ask(by, names)


def overcommit(olga: Actor, names: Names) -> None:
    """Lets more units of one class be allocated than exist. Before the teams get quota of it."""
    from catalog.classes import actions
    from catalog.models import GpuClass

    gpu_class = GpuClass.objects.filter(slug=names.get(XE, "")).first()
    if gpu_class is not None and not gpu_class.promise_limit:
        actions.edit_class(gpu_class.pk, by=olga, promise_limit=OVERCOMMITTED_TO)


def _hold_gaudi(olga: Actor, names: Names) -> None:
    """Only before the first workload for it is queued: an operator of the demo may resume scheduling."""
    from django.utils import timezone

    from catalog.classes import actions
    from catalog.models import GpuClass
    from workloads.models import Workload

    gpu_class = GpuClass.objects.filter(slug=names.get(GAUDI, "")).first()
    if gpu_class is not None and not Workload.objects.filter(gpu_class=gpu_class).exists():
        until = timezone.now() + timedelta(hours=HELD_HOURS)
        actions.hold_class(gpu_class.pk, reason=HELD_BECAUSE, until=until, by=olga)


def _ask(by: Callable[[str], Actor], names: Names) -> None:
    """Files what the approver finds: a request that fits, one for more GPUs than exist, and a new team."""
    from tenants.models import QuotaRequest, TeamRequest
    from tenants.onboarding.team_requests import actions as team_requests

    wanted = (
        ("charlie", "team-c", A100, 6, "The large model doubles next week: two more GPUs for the second replica."),
        ("erin", "vision", H100, 12, "Pretraining of the foundation model for two weeks."),
    )
    for who, team, key, units, why in wanted:
        if key in names and not QuotaRequest.objects.filter(tenant__slug=team, justification=why).exists():
            quota_setup.file_request(team, [(names[key], units)], why, by=by(who))
    if not TeamRequest.objects.exists():
        purpose = "Control of robot arms, with simulation on GPUs."
        team_requests.request_team(name="Robotics", purpose=purpose, bundle="Research", by=by("bob"))


def _spec(one: tuple[str, str, str, str, str, int, str], names: Names) -> LaunchSpec:
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec

    _, _, name, kind, key, units, image = one
    if kind == "notebook":
        return LaunchSpec(name, kind, names[key], units, image)
    options = Options(run_hours=20, checkpoints=True)
    return LaunchSpec(name, kind, names[key], units, image, command=("python", "train.py"), options=options)
