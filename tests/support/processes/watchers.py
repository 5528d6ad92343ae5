"""Starts watcher processes for tests, and waits until their work shows in rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cluster.mirror.records import kinds
from cluster.models import Cluster
from cluster.reads import queries
from tests.support.processes.preloaded import Child, watch
from tests.support.waiting import wait_until


@dataclass
class Watchers:
    kubeconfig: str
    directory: Path
    processes: list[Child] = field(default_factory=list)

    def start(self, *arguments: str) -> Child:
        process = watch(*arguments, kubeconfig=self.kubeconfig, log=self.log(len(self.processes)))
        self.processes.append(process)
        return process

    def log(self, number: int) -> Path:
        return self.directory / f"watcher-{number}.log"

    def said(self, number: int, word: str) -> bool:
        return word in self.log(number).read_text()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(10)


def eventually(condition: Callable[[], bool], watchers: Watchers, *, within_s: float = 90) -> None:
    def story() -> str:
        return "\n".join(watchers.log(number).read_text() for number in range(len(watchers.processes)))

    wait_until(condition, within_s=within_s, story=story)


def is_current(cluster: Cluster) -> bool:
    names = kinds.followed_kinds(has_kueue=cluster.has_kueue)
    return queries.as_of(cluster.pk).is_current and queries.is_known(cluster.pk, *names)
