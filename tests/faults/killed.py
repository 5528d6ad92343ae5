"""Kills a worker before or after the n-th write of one provisioning; another one claims the row when its lease expires.

It uses a real process and a real SIGKILL: requests for one namespace are sent in parallel, so that an exception in one
of them would not end the others. The proxy kills the worker when the n-th write has arrived and was not forwarded
(before), or was done and not answered (after).
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from django.db.models.functions import Now

from devcluster.faults.rules import WRITES
from portal.core import due
from tests.faults.scenes import Scene, Stage
from tests.faults.writes import differences, undisturbed
from tests.plugin import process_environment

MOMENTS = ("before", "after")
ROOT = Path(__file__).parent.parent.parent


class Zygote:
    """See victim.py."""

    def __init__(self, log: Path) -> None:
        self.log = log.open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.victim"],
            cwd=ROOT,
            env=process_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def child(self, table: str, kubeconfig: Path) -> int:
        assert self.process.stdin
        self.process.stdin.write(f"{table} {kubeconfig}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()


def killed_around_each_write(stage: Stage, zygote: Zygote, sort: str, moment: str, *, every: int = 1) -> int:
    """`every`: kills at one write in so many, at different ones for each moment. Returns how many workers died."""
    writes, wanted = undisturbed(stage, sort)
    told: dict[int, list[str]] = {}
    chosen = range(1 + MOMENTS.index(moment) % every, writes + 1, every)
    for nth in chosen:
        scene = stage.scene(sort, f"{moment}{nth}")
        alone(scene)
        pids: queue.Queue[int] = queue.Queue()

        def kill(pids: queue.Queue[int] = pids) -> None:
            os.kill(pids.get(timeout=20), signal.SIGKILL)

        rule = stage.proxy.when(WRITES, nth=nth)
        rule.call_before(kill) if moment == "before" else rule.call_after(kill)
        pids.put(zygote.child(due.table_label(type(scene.row)), stage.proxy.kubeconfig))
        code = zygote.answer()
        stage.proxy.forget()
        found = [f"it ended with {code}"] if code != -signal.SIGKILL else after_death(stage, scene, wanted)
        if found:
            told[nth] = found
    assert not told, "\n".join(f"{moment} write {nth}: {line}" for nth, lines in told.items() for line in lines)
    return len(chosen)


def alone(scene: Scene) -> None:
    """No other row of the table is due."""
    type(scene.row)._base_manager.exclude(pk=scene.row.pk).update(due_at=None)


def after_death(stage: Stage, scene: Scene, wanted: dict[str, object]) -> list[str]:
    """No worker claims the row before its lease expires; then the next worker continues, with the same end state."""
    alone(scene)
    model = type(scene.row)
    if due.claim(model) is not None:
        return ["somebody else is on the row before the lease is over"]
    model._base_manager.filter(pk=scene.row.pk).update(leased_until=Now() - timedelta(seconds=1))
    row = stage.look(scene)
    if row.error_code:
        return [f"the next worker stumbles: {row.error_code} {row.error_text}"]
    stage.settle(scene)
    return differences(stage, scene, wanted)
