"""What is lost when a run is interrupted or ends: its work so far, and files that are on no volume. Pure."""

from __future__ import annotations

from cluster.manifests.run_spec import HOME, JOB
from workloads.models import Run


def interruption_loss_of(run: Run) -> str:
    """What is lost by an interruption."""
    spec = run.spec
    return interruption_loss(
        spec["kind"],
        checkpoints=spec.get("checkpoints", False),
        claim=spec["claim"],
        mount_path=spec.get("mount_path", ""),
    )


def interruption_loss(kind: str, *, checkpoints: bool, claim: str, mount_path: str) -> str:
    """What an interruption costs."""
    return f"{work_loss(kind, checkpoints=checkpoints)} {file_loss(claim, mount_path)}"


def work_loss(kind: str, *, checkpoints: bool) -> str:
    """The part of it that is not about files."""
    if kind != JOB:
        return "It starts again by itself with an empty memory: kernels and what they hold are lost."
    if checkpoints:
        return "It starts again by itself and goes on from the last checkpoint that it wrote; what came after is lost."
    return "It starts again by itself from its beginning: nobody said that it writes checkpoints."


def file_loss(claim: str, mount_path: str) -> str:
    """What the end of a run does to its files; as true before as after it."""
    path = mount_path or HOME
    if not claim:
        return "It has no volume: its files go with the run, as what is only in memory does."
    if path == HOME:
        return f"Its files in {HOME} stay on the volume {claim}; what is only in memory is lost."
    return f"Its files in {path} stay on the volume {claim}; files elsewhere and what is only in memory are lost."


def file_loss_of(run: Run) -> str:
    """What its end does to them, in one sentence that is as true before as after it."""
    return file_loss(run.spec["claim"], run.spec.get("mount_path", ""))
