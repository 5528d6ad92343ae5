"""What is lost when a run is interrupted or ends: memory, progress, and files that are not on a volume. Pure."""

from __future__ import annotations

from cluster.manifests.run_spec import HOME, JOB
from workloads.models import Run


def interruption_loss_of(run: Run) -> str:
    """Returns what an interruption of this run loses."""
    spec = run.spec
    return interruption_loss(
        spec["kind"],
        checkpoints=spec.get("checkpoints", False),
        claim=spec["claim"],
        mount_path=spec.get("mount_path", ""),
    )


def interruption_loss(kind: str, *, checkpoints: bool, claim: str, mount_path: str) -> str:
    """Returns what an interruption loses."""
    return f"{work_loss(kind, checkpoints=checkpoints)} {file_loss(claim, mount_path)}"


def work_loss(kind: str, *, checkpoints: bool) -> str:
    """Returns the part of the loss that is not about files."""
    if kind != JOB:
        return "It restarts automatically; kernels and their variables are lost."
    if checkpoints:
        return "It restarts automatically and continues from its last checkpoint; later progress is lost."
    return "It restarts automatically from the beginning: no checkpointing is declared."


def file_loss(claim: str, mount_path: str) -> str:
    """Returns what happens to the files when a run ends; the text is true before and after the end."""
    path = mount_path or HOME
    if not claim:
        return "It has no volume: files are deleted when it stops, and memory is lost."
    if path == HOME:
        return f"Files in {HOME} are kept on the volume {claim}; memory is lost."
    return f"Files in {path} are kept on the volume {claim}; other files and memory are lost."


def file_loss_of(run: Run) -> str:
    """Returns in one sentence what happens to the run's files at its end; the text is true before and after the end."""
    return file_loss(run.spec["claim"], run.spec.get("mount_path", ""))
