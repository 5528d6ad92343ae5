"""A client generated from the contract alone runs the main path."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.cli.command import token_of
from tests.cli.examples import generated
from tests.cli.examples.ci import play
from tests.cli.examples.test_ci_live import classes, portal
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.source import ROOT

# Fixtures of other modules, by their names.
__all__ = ["classes", "portal"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher"), pytest.mark.timeout(480)]


def test_the_main_path_by_a_generated_client(
    portal: str, classes: dict[str, GpuClass], team_a: Tenant, namespace_a: Namespace, bob: User, images: list[Image],
    kube_worker: Kube, clean_cluster: None, worker: Worker, admin: Api, tmp_path: Path,
) -> None:  # fmt: skip
    free = classes["free"]
    make.grant(team_a, free, units=4)
    provision(namespace_a, kube_worker)
    with urlopen(f"{portal}/api/v1/openapi.json", timeout=60) as answer:
        package = generated.client(answer.read(), tmp_path)
    command = [str(generated.generator()), str(Path(__file__).with_name("main_path.py")), portal, free.slug]
    known = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}",
        "GPU_TOKEN": token_of(bob, "read", "launch"),
    }
    with ScriptedKubelet(admin).claim(namespace_a.name, script=play), ThreadPoolExecutor(1) as threads:
        done = threads.submit(
            subprocess.run, command, env=known, capture_output=True, text=True, timeout=400, check=False
        )
        worker(done.done, within_s=420)
    ended = done.result()
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "classes": sorted(one.slug for one in classes.values()),
        "declared": [201, "Workload", True],
        "declared again": [200, "Workload", True],
        "refused": [True, "unknown_class", "gpu_class"],
        "started": [201, 1, True],
        "run": [True, "main", "succeeded", 0, "succeeded"],
        "in order": True,
        "log": [200, True],
        "listed": ["made-by-it"],
        "deleted": [202, True],
        "gone": "not_found",
    }
