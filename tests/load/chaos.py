"""The wanted state keeps changing while workers die at random before and after their writes to the cluster.

The claim: no two workers lease a row at the same time, and when no more workers die, every row settles and the cluster
holds exactly what the rows want. A short form runs in the suite, 24 workers in `run.py soak`.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from catalog.classes import actions as catalog
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from portal.core import due
from tenants.models import Grant, Namespace
from tenants.provisioning import reconcile
from tests.plugin import process_environment
from tests.support.rows import make
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@dataclass
class Zygote:
    """The process that forks workers; `stop` ends them all and returns how many died and whether two overlapped."""

    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> dict[str, int]:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        return self.told()

    def told(self) -> dict[str, int]:
        lines = self.log.read_text().splitlines()
        return {word: sum(line.startswith(word) for line in lines) for word in ("died", "overlap", "crashed")}


def start(*, workers: int, death_rate: float, kubeconfig: str, log: Path, seed: int = 1) -> Zygote:
    """`death_rate`: probability that a worker dies at one of the two moments around each of its writes."""
    command = [
        sys.executable,
        "-m",
        "tests.load.chaos_workers",
        "--workers",
        str(workers),
        "--death-rate",
        str(death_rate),
    ]
    command += ["--kubeconfig", kubeconfig, "--seed", str(seed)]
    stream = log.open("w")
    process = subprocess.Popen(
        command, stdout=stream, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=process_environment()
    )
    stream.close()
    return Zygote(process, log)


# ---- random changes and the expected final state ----------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """Teams with a grant of one class each; all rows are committed, so that other processes see them."""

    namespaces: list[Namespace]
    gpu_class: GpuClass
    kube: Kube


def build_world(*, cluster: Cluster, gpu_class: GpuClass, teams: int, kube: Kube, unique: str) -> World:
    """Creates the flavor before the chaos begins; namespaces are created during it."""
    catalog.ensure_pool(cluster)
    rows = [make.tenant(cluster, slug=f"team-{n}", namespace=f"chaos-{unique}-{n}") for n in range(teams)]
    due.drain(Pool, lambda row, deadline: reconcile.reconcile_pool(row, deadline, kube=kube), for_s=5)
    namespaces = [row.namespaces.get() for row in rows]
    for namespace in namespaces:
        due.touch(Namespace, namespace.pk)
    return World(namespaces, gpu_class, kube)


def change_something(world: World, dice: random.Random) -> None:
    """Changes one team: suspends or resumes it, or changes its number of units."""
    namespace = dice.choice(world.namespaces)
    with transaction.atomic():
        if dice.random() < 0.3:
            wanted = dice.choice([Namespace.Wanted.ACTIVE, Namespace.Wanted.SUSPENDED])
            Namespace.objects.filter(pk=namespace.pk).update(wanted=wanted)
        else:
            Grant.objects.filter(tenant=namespace.tenant_id).delete()
            make.grant(namespace.tenant, world.gpu_class, units=dice.randrange(9))
        due.touch(Namespace, namespace.pk)


def is_settled() -> bool:
    """No row is leased or due, and each was applied in its wanted generation."""
    return not Namespace.objects.exclude(
        leased_until=None, due_at__gt=timezone.now(), observed_generation=F("generation"), error_code=""
    ).exists()


def differences(world: World, admin: Api) -> list[str]:
    """Differences between the cluster, as an independent client sees it, and the rows."""
    found = []
    for namespace in Namespace.objects.select_related("tenant"):
        queue = admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", namespace.name)
        quota = admin.find("v1/resourcequotas", "gpu-portal", namespace=namespace.name)
        if queue is None or quota is None:
            found.append(f"{namespace.name}: {'queue' if queue is None else 'quota'} is missing")
            continue
        units = sum(grant.units for grant in Grant.objects.filter(tenant=namespace.tenant))
        groups = queue["spec"].get("resourceGroups", [])
        nominal = sum(int(cell["nominalQuota"]) for g in groups for f in g["flavors"] for cell in f["resources"])
        is_held = queue["spec"].get("stopPolicy", "None") == "Hold"
        hard = int(quota["spec"]["hard"][f"requests.{world.gpu_class.resource}"])
        wanted = (units, namespace.wanted == Namespace.Wanted.SUSPENDED, 2 * units)
        if (nominal, is_held, hard) != wanted:
            found.append(f"{namespace.name}: wanted {wanted}, found {(nominal, is_held, hard)}")
    return found


def run(
    world: World, *, admin: Api, kubeconfig: str, log: Path, workers: int, death_rate: float, for_s: float, deaths: int
) -> dict[str, int]:
    """Runs chaos for a while and until so many workers died, then waits. Returns how many died and overlapped."""
    dice = random.Random(7)
    zygote = start(workers=workers, death_rate=death_rate, kubeconfig=kubeconfig, log=log)
    try:
        ends, gives_up = time.monotonic() + for_s, time.monotonic() + for_s + 60
        while time.monotonic() < ends or zygote.told()["died"] < deaths:
            assert time.monotonic() < gives_up, f"only {zygote.told()} in {for_s + 60:.0f} s"
            change_something(world, dice)
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"the workers ended by themselves: exit {zygote.process.wait(0.05)}")
    finally:
        told = zygote.stop()
    calm = start(workers=2, death_rate=0.0, kubeconfig=kubeconfig, log=log.with_suffix(".calm"))
    try:
        wait_until(is_settled, within_s=60, what="every row settled", story=lambda: str(list(unsettled())))
    finally:
        told["crashed"] += calm.stop()["crashed"]
    assert differences(world, admin) == []
    return told


def unsettled() -> Iterator[str]:
    for row in Namespace.objects.exclude(observed_generation=F("generation"), leased_until=None):
        yield f"{row.name}: {row.generation}/{row.observed_generation} {row.error_code} {row.error_text}"
