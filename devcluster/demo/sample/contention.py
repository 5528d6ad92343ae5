"""The data of the scenario `morning`: three teams request 36 of 32 whole GPUs.

Four training jobs use 16 GPUs and twelve model servers use 12. Then eight notebooks with one whole GPU each are
launched: four of them get one. Each step is an action of the portal by the user who would do it, and waits until the
cluster has carried out the previous step. So the same four notebooks are queued in every demo.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from devcluster.demo.sample import launching, quota_setup

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from catalog.models import GpuClass
    from workloads.launch.types import LaunchSpec

GPU, SLICE, SHARE = "nvidia.com/gpu", "nvidia.com/mig-2g.20gb", "nvidia.com/gpu.shared"
# (owner, team, ((resource, units), …), justification) of each team's quota. All GPUs are allocated to teams; unused
# quota is lent.
HELD = (
    ("alice", "vision", ((GPU, 16),), "Four training jobs, one whole node each."),
    ("charlie", "serving", ((GPU, 12), (SLICE, 12)), "Twelve models for all users, on GPUs or on MIG slices."),
    ("bob", "lab", ((GPU, 4), (SHARE, 8)), "Notebooks of eight users, most of them on shares."),
)
LENT = 4  # borrowing limit of a team, in GPUs
TRAININGS = ("pretrain-1", "pretrain-2", "pretrain-3", "pretrain-4")
MODELS = tuple(f"model-{number:02}" for number in range(1, 13))
# In the order of their launches; the first four get a GPU.
NOTEBOOKS = (
    ("cell-tracking", "bob"),
    ("retina-seg", "erin"),
    ("speech-align", "bob"),
    ("tokenizer-study", "erin"),
    ("seg-ablation", "bob"),
    ("lora-check", "erin"),
    ("mask-review", "bob"),
    ("label-noise", "erin"),
)
HAVE_ONE = 4


def fill_cluster(by: Callable[[str], Actor]) -> None:
    """Creates what is missing. It runs again at each start of the demo: what exists is not changed, and a deleted
    workload is not launched again. `by`: returns the actor for a name of the cast.
    """
    from catalog.classes import actions as catalog
    from tenants.models import QuotaLine

    gpu = _class(GPU)
    if not QuotaLine.objects.filter(gpu_class=gpu).exists():
        catalog.edit_class(gpu.pk, by=by("olga"), borrowing_limit=LENT)
    for owner, team, units, why in HELD:
        lines = [(_class(resource).slug, number) for resource, number in units]
        asked = QuotaLine.objects.filter(request__tenant__slug=team, gpu_class__slug__in=dict(lines))
        if not asked.exists():
            quota_setup.approve_request(quota_setup.file_request(team, lines, why, by=by(owner)), by=by("dana"))
    launching.launch_all("vision", [(_training(name), by("alice")) for name in TRAININGS])
    launching.launch_all("serving", [(_model(name), by("charlie")) for name in MODELS])
    launching.launch_all("lab", [(_notebook(name), by(who)) for name, who in NOTEBOOKS[:HAVE_ONE]])
    for name, who in NOTEBOOKS[HAVE_ONE:]:
        launching.queue("lab", _notebook(name), by(who))


def _class(resource: str) -> GpuClass:
    from catalog.models import GpuClass

    return GpuClass.objects.get(resource=resource, life_cycle=GpuClass.LifeCycle.ACTIVE)


# ---- workloads -------------------------------------------------------------------------------------------------------


def _training(name: str) -> LaunchSpec:
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec

    said = Options(checkpoints=True, run_hours=20)
    command = ("torchrun", "--nproc-per-node=4", "pretrain.py")
    return LaunchSpec(name, "job", _class(GPU).slug, 4, "PyTorch", command=command, options=said)


def _model(name: str) -> LaunchSpec:
    """A model server. It is declared with checkpointing, because a preemption loses nothing of it."""
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec

    said = Options(checkpoints=True)
    return LaunchSpec(name, "job", _class(GPU).slug, 1, "PyTorch", command=("python", "serve.py", name), options=said)


def _notebook(name: str) -> LaunchSpec:
    """A notebook with its files on a volume, so that it keeps them if it is moved to another class."""
    from workloads.launch.types import LaunchSpec

    return LaunchSpec(name, "notebook", _class(GPU).slug, 1, "JupyterLab with PyTorch", volume=name, volume_gib=10)
