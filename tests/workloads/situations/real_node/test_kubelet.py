"""What kubelet, containerd, runc and registries say of a job that does not run, and what the portal tells of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from devcluster.node.registry import Answer, Registry
from tenants.class_access.image_prefixes import actions as image_prefixes
from tests.support.cluster.worker import Worker
from tests.workloads.cases.staged import until_as_written
from tests.workloads.situations.real_node.written import BLOCKED, HOSTS, PROGRAMS, REGISTRY
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.registries.actions import RegistryLogin
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [
    pytest.mark.real_node,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("watcher", "clean_cluster"),
]

WRITES_BEYOND_SHARED_MEMORY = """
import mmap, os
file = os.open("/dev/shm/file", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 1 << 40)
memory = mmap.mmap(file, 1 << 32)
while True:
    memory.write(bytes(1 << 20))
"""
# Each as its user would type it, as words.
COMMANDS = {
    "not-in-image": ("trian", "--epochs", "3"),
    "script-not-found": ("sh", "-c", "trian"),
    "no-program": ("/etc/hostname",),
    "crash": ("sh", "-c", "exit 3"),
    "memory": ("python3", "-c", "x = bytearray(3 << 30)"),
    "killed": ("sh", "-c", "python3 -c 'import os; os.kill(os.getpid(), 9)'; exit $?"),
    "terminated": ("sh", "-c", "python3 -c 'import os; os.kill(os.getpid(), 15)'; exit $?"),
    "bus-error": ("python3", "-c", WRITES_BEYOND_SHARED_MEMORY),
    "gpu-memory": ("python3", "-c", "raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 GiB')"),
    "no-gpu-seen": ("python3", "-c", "raise RuntimeError('No CUDA GPUs are available')"),
    "gpu-fault": ("python3", "-c", "raise RuntimeError('CUDA error: uncorrectable ECC error encountered')"),
    "old-driver": ("python3", "-c", "raise RuntimeError('The NVIDIA driver on your system is too old (found 11040).')"),
    "wrong-gpu": (
        "python3",
        "-c",
        "raise RuntimeError('CUDA error: no kernel image is available for execution on the device')",
    ),
    "unreachable": ("true",),
}
OPTIONS = {
    "memory": Options(memory_gib=1),
    "bus-error": Options(memory_gib=4, shared_memory_gib=1),
    "unreachable": Options(repository="https://exmaple.org/course.git"),
}


def test_what_programs_do(job: LaunchSpec, by_alice: Actor, worker: Worker) -> None:
    for name in PROGRAMS:
        spec = replace(job, name=name, command=COMMANDS[name], options=OPTIONS.get(name, Options()))
        actions.launch("team-a", spec, by=by_alice)
    # Two at a time on two cores.
    until_as_written(worker, by_alice, PROGRAMS, within_s=300)


def test_what_registries_answer(
    job: LaunchSpec, by_alice: Actor, olga: User, worker: Worker, registry: Registry, untrusted: Registry
) -> None:
    """One after another: each keeps a core while it waits."""
    registry.answers |= {
        "team/private": Answer(401, "UNAUTHORIZED", "authentication required"),
        "team/limited": Answer(429, "TOOMANYREQUESTS", "You have reached your pull rate limit."),
        "team/wrong-login": Answer(401, "UNAUTHORIZED", "authentication required"),
        "team/denied": Answer(403, "DENIED", "requested access to the resource is denied"),
        "team/down": Answer(503, "UNAVAILABLE", "try again later"),
    }
    registry.only_for("team/other-cpu", "arm64")
    for host in (REGISTRY, *HOSTS.values()):
        image_prefixes.allow_prefix("team-a", f"{host}/", by=Actor(olga, via="page"))
    for name, one in BLOCKED.items():
        if name == "wrong-login":
            registry_actions.put_login("team-a", REGISTRY, RegistryLogin("robot", "wrong"), by=by_alice)
        image = f"{HOSTS.get(name, REGISTRY)}/team/{name}:1"
        actions.launch("team-a", replace(job, name=name, image=image, command=("true",)), by=by_alice)
        until_as_written(worker, by_alice, {name: one})
        actions.stop("team-a", name, by=by_alice)
