"""The examples of docs/ci, word for word, against web, doors, gateway, watcher and a real control plane.

The kubelet is scripted: a job whose name ends in "fails" ends with 3, one that "stays" does not end, nor does the first
run of "pushed".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from cluster.models import Cluster, MirrorWorkload
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from devcluster.processes.ports import answers, free_port
from devcluster.processes.supervisor import Command, Supervisor
from tenants.models import Grant, Namespace, Tenant
from tests.cli.command import token_of
from tests.cli.examples import ci
from tests.cli.examples.ci import play
from tests.plugin import process_environment
from tests.support.cluster.worker import Worker, provision
from tests.support.processes.streaming import Doors
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import is_open
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher"), pytest.mark.timeout(480)]


@pytest.fixture
def portal(doors: Doors, services: dict[str, Any], tmp_path: Path) -> Iterator[str]:
    """Its address, behind the gateway: calls that wait go to doors."""
    web, gateway = free_port(), free_port()
    address = f"http://localhost:{gateway}"
    known = process_environment() | {"PORTAL_URL": address, "ALLOWED_HOSTS": "*"}
    gunicorn = ["-m", "gunicorn", "portal.wsgi:application", "--bind", f"127.0.0.1:{web}", "--no-control-socket"]
    caddy = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GATEWAY_ADDRESS": f"http://:{gateway}",
        "WEB_UPSTREAM": f"127.0.0.1:{web}",
        "DOORS_UPSTREAM": f"127.0.0.1:{doors.port}",
        "PORTAL_HOST": f"localhost:{gateway}",
        "NOTEBOOKS_DOMAIN": f"notebooks.localhost:{gateway}",
    }
    run = [Path(services["bin_dir"]) / "caddy", "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    with Supervisor(tmp_path / "log") as supervisor:
        arguments = [sys.executable, *gunicorn, "--threads", "8", "--graceful-timeout", "1"]
        supervisor.start(Command("web", arguments, env=known, cwd=ci.ROOT, ready=partial(answers, web)))
        supervisor.start(Command("gateway", run, env=caddy, cwd=ci.ROOT, ready=partial(answers, gateway)))
        supervisor.until_ready()
        yield address


@pytest.fixture
def classes(cluster: Cluster, admin: Api, unique: str) -> Iterator[dict[str, GpuClass]]:
    """`free` with ten GPUs, `full` with one and `less` with two, on nodes that no other pods request; nothing to
    borrow.
    """
    made = {}
    for name, cards in (("free", 10), ("full", 1), ("less", 2)):
        product = f"{name}-{unique}".upper()
        labels = {"nvidia.com/gpu": {"product": product, "present": True}}
        taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        node = hardware.node(f"{name}-{unique}", devices={"nvidia.com/gpu": cards}, labels=labels, taints=[taint])
        hardware.add(admin, node)
        made[name] = make.gpu_class(
            cluster, slug=f"{name}-{unique}", name="Own", node_labels={"nvidia.com/gpu.product": product},
            cpu_per_unit=1, memory_gib_per_unit=1, borrowing_limit=0,
        )  # fmt: skip
    yield made
    for name in made:
        admin.delete("v1/nodes", f"{name}-{unique}")


def test_the_examples_as_they_stand(
    portal: str, classes: dict[str, GpuClass], team_a: Tenant, namespace_a: Namespace, bob: User, images: list[Image],
    kube_worker: Kube, clean_cluster: None, worker: Worker, by_alice: Actor, admin: Api, tmp_path: Path,
) -> None:  # fmt: skip
    """Success, failure, refusal, a time-out in the queue, a run that can never start, and a push that replaces a run;
    all at once, as pushes come.
    """
    free, full, less = classes["free"], classes["full"], classes["less"]
    make.grant(team_a, free, units=4)
    make.grant(team_a, full, units=1)
    make.grant(team_a, less, units=1)
    make.grant(team_a, less, units=1, kind=Grant.Kind.BOOST)
    provision(namespace_a, kube_worker)
    built = ci.wheel(tmp_path)
    homes = {name: tmp_path / name for name in ("lines", "github", "gitlab", "gitlab-waits", "push", "newer")}
    for home in homes.values():
        home.mkdir()
    shared = {"GPU_PORTAL": portal, "GPU_TEAM": "team-a", "GPU_TOKEN": token_of(bob, "read", "launch")}
    shared |= {"GPU_CLI": str(built), "GPU_CLASS": free.slug, "UNITS": "1", "IMAGE": "python", "TIMEOUT": "5m"}
    install = 'pip install --quiet "$GPU_CLI"'
    installed = ci.bash(install, homes["lines"], ci.environment(homes["lines"]) | shared)
    assert installed.code == 0, installed.err

    def asked(**of_it: str) -> Mapping[str, str]:
        return shared | of_it

    in_queue = {"GPU_CLASS": full.slug, "TIMEOUT": "4s"}
    with ScriptedKubelet(admin).claim(namespace_a.name, script=play), ThreadPoolExecutor(8) as threads:
        for gpu_class in (full, less):
            stays = LaunchSpec(
                name=f"{gpu_class.slug}-stays", kind="job", gpu_class=gpu_class.slug, units=1, image="python"
            )
            actions.launch("team-a", stays, by=by_alice)
        worker(lambda: Run.objects.filter(started_at__isnull=False).count() == 2)
        submit, lines = threads.submit, homes["lines"]
        ended: dict[str, Future[ci.Ended]] = {
            "ends": submit(ci.five_lines, lines, asked(JOB="ends")),
            "fails": submit(ci.five_lines, lines, asked(JOB="fails")),
            "refused": submit(ci.five_lines, lines, asked(JOB="refused", UNITS="5")),
            "waits": submit(ci.five_lines, lines, asked(JOB="waits", **in_queue)),
            "github": submit(ci.github, homes["github"], asked(JOB="github-fails")),
            "gitlab": submit(ci.gitlab, homes["gitlab"], asked(JOB="gitlab")),
            "gitlab-waits": submit(ci.gitlab, homes["gitlab-waits"], asked(JOB="gitlab-waits", **in_queue)),
            "never": submit(ci.five_lines, lines, asked(JOB="never", GPU_CLASS=less.slug, UNITS="2")),
            "push": submit(ci.github, homes["push"], asked(JOB="pushed")),
        }
        worker(lambda: Run.objects.filter(workload__name="pushed", started_at__isnull=False).exists())
        ended["newer"] = submit(ci.github, homes["newer"], asked(JOB="pushed", GITHUB_RUN_ID="newer"))
        # Its second unit is no longer granted.
        worker(lambda: MirrorWorkload.objects.filter(namespace=namespace_a.name, name__contains="never").exists())
        Grant.objects.filter(kind=Grant.Kind.BOOST).delete()
        wait_until(lambda: is_open(namespace_a, kube_worker))
        worker(lambda: all(one.done() for one in ended.values()), within_s=150)
    told = {name: one.result() for name, one in ended.items()}

    codes = {name: one.code for name, one in told.items()}
    lines_of = {"ends": 0, "fails": 1, "refused": 6, "waits": 3, "never": 6}
    assert codes == {**lines_of, "github": 1, "gitlab": 0, "gitlab-waits": 3, "push": 1, "newer": 0}, "\n\n".join(
        f"{name}: {one.code}\n{one.out}\n{one.err}" for name, one in told.items()
    )
    last = {name: told[name].out.splitlines()[-1] for name in ("ends", "fails", "waits")}
    assert last == {"ends": "exit code 0", "fails": "exit code 3", "waits": "exit code None"}
    assert "succeeded: " in told["ends"].err
    assert "failed: " in told["fails"].err
    assert "5 of Own requested; your team can use at most 4" in told["refused"].err
    assert "Timed out after 4s while queued: " in told["waits"].err
    assert "2 units of Own requested, but your team may use at most 1 now." in told["never"].err
    assert "Stopped: replaced by a newer run of the group pushed/main, pushed." in told["push"].err
    assert "pushed: run 2, " in told["newer"].err
    assert "github-fails: failed " in told["github"].out  # the step that gives the reason
    results = {name: json.loads((homes[name] / "run.json").read_text()) for name in ("gitlab", "gitlab-waits")}
    assert {name: found["outcome"] for name, found in results.items()} == {"gitlab": "succeeded", "gitlab-waits": ""}

    assert not Run.objects.filter(workload__name="refused").exists()
    # Without --stop it keeps its place.
    stopped = {"waits": False, "gitlab-waits": True}
    for name, is_stopped in stopped.items():
        assert (Run.objects.get(workload__name=name).stop_requested_at is not None) is is_stopped
    assert all(shared["GPU_TOKEN"] not in one.out + one.err for one in told.values())
