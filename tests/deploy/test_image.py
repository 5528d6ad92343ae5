"""The image: built from pinned bases, runs without root, with everything that the portal needs and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.support.shipped import PINNED, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
# Hashed names as in the build, without its compression: that takes half a minute and cannot fail.
COLLECT = """
from django.conf import settings
from django.core.management import execute_from_command_line
storage = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
settings.STORAGES["staticfiles"] = {"BACKEND": storage}
execute_from_command_line(["manage.py", "collectstatic", "--noinput", "--verbosity=0"])
"""
# Signs in as each process does, loads every app, command and entry point, and prints all modules that were loaded.
LOAD = """
import sys
import django
django.setup()
import portal.asgi, portal.celery, portal.wsgi
from django.core.management import get_commands, load_command_class
from cluster.client.login import Login
for name, app in get_commands().items():
    load_command_class(app, name)
assert Login(sys.argv[1]).current().host
print(*sys.modules, sep="\\n")
"""
FINAL_STAGE = DOCKERFILE[DOCKERFILE.rindex("FROM ") :]


def copied() -> list[str]:
    """Files and folders of the repository in the final image."""
    lines = [line.split()[1:] for line in FINAL_STAGE.splitlines() if line.startswith("COPY ")]
    return [source for words in lines if not words[0].startswith("--from") for source in words[:-1]]


def test_bases_are_pinned_and_packages_are_checked() -> None:
    [default] = re.findall(r"^ARG BASE=(\S+)", DOCKERFILE, re.MULTILINE)
    assert PINNED.match(default)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}
    assert "--require-hashes" in DOCKERFILE
    assert "dev.txt" not in DOCKERFILE


def test_it_runs_as_nobody() -> None:
    users = re.findall(r"^USER (\S+)", FINAL_STAGE, re.MULTILINE)

    assert users == ["10001:10001"]


def test_every_app_of_ours_is_in_it() -> None:
    ours = {app.split(".")[0] for app in settings.INSTALLED_APPS if (ROOT / app.split(".")[0]).is_dir()}

    assert ours <= set(copied())
    assert not {"cli", "devcluster", "tests", "run.py", "tools", ".", "secrets"} & set(copied())


def test_the_build_sees_what_is_copied_and_nothing_else() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]

    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == {*copied(), "requirements/run.txt"}


def test_static_files_are_collected_from_what_is_copied(tmp_path: Path) -> None:
    """The step of the build that fails when a page's file is missing; it also loads every app."""
    for source in copied():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, tmp_path / source)
    (tmp_path / ".static").mkdir()
    environment = {"SECRET_KEY": "build", "DATABASE_URL": "postgres://build/build", "REDIS_URL": "redis://build"}
    environment["DJANGO_SETTINGS_MODULE"] = "portal.settings"

    subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=tmp_path,
        env=environment | {"PATH": os.environ["PATH"]},
        check=True,
        timeout=100,
    )

    manifest = (tmp_path / ".static" / "staticfiles.json").read_text()
    assert '"portal/' in manifest
    assert '"vendor/' in manifest


def test_what_the_build_removes_of_packages_is_loaded_by_no_process(services: dict[str, Any]) -> None:
    [removed] = re.findall(r"&& rm -r (.+) \\", DOCKERFILE)
    packages = [path.replace("/[!_]*.py", "/x").replace("/", ".") for path in removed.split()]
    environment = {"SECRET_KEY": "x", "DATABASE_URL": "postgres://x/x", "REDIS_URL": "redis://x"}
    environment["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    done = subprocess.run(
        [sys.executable, "-c", LOAD, services["kubeconfigs"]["worker"]],
        cwd=ROOT,
        env=environment | {"PATH": os.environ["PATH"]},
        check=True,
        timeout=100,
        stdout=subprocess.PIPE,
        text=True,
    )
    loaded = done.stdout.split()

    assert "kubernetes.client.api_client" in loaded
    for package in packages:
        # Of models, the package itself stays.
        within = f"{package.removesuffix('.x')}."
        assert not [name for name in loaded if name == package or name.startswith(within)]
