"""deploy/make_secrets.py: what docker-compose.yml reads, made once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from tests.support.shipped import DEPLOY, compose


def run(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEPLOY / "make_secrets.py"), *arguments]
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False, timeout=30)


def test_it_makes_every_secret_but_the_kubeconfigs_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"

    done = run("--folder", str(folder))

    wanted = {Path(secret["file"]).name for secret in compose()["secrets"].values()}
    kubeconfigs = {"kubeconfig_worker", "kubeconfig_watcher", "kubeconfig_doors"}
    assert {path.name for path in folder.iterdir()} == wanted - kubeconfigs
    assert done.returncode == 1
    assert all(name in done.stderr for name in kubeconfigs)


def test_others_cannot_look_in_and_containers_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"

    run("--folder", str(folder))

    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


def test_addresses_hold_the_passwords_of_their_servers(tmp_path: Path) -> None:
    run("--folder", str(tmp_path))

    def read(name: str) -> str:
        return (tmp_path / name).read_text()

    assert read("database_url") == f"postgres://portal:{read('database_password')}@postgres:5432/portal"
    assert read("redis_url") == f"redis://:{read('redis_conf').split()[1]}@redis:6379/0"
    assert len({read(name) for name in ("secret_key", "notebook_token_key", "database_password")}) == 3


def test_the_two_halves_that_seal_and_open_belong_together(tmp_path: Path) -> None:
    run("--folder", str(tmp_path))

    private = PrivateKey((tmp_path / "secrets_private_key").read_bytes(), encoder=Base64Encoder)
    assert (tmp_path / "secrets_public_key").read_bytes() == private.public_key.encode(Base64Encoder)


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    run("--folder", str(tmp_path))
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    again = run("--folder", str(tmp_path))

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    assert "nothing, all files exist" in again.stdout


def test_without_kubectl_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run("--folder", str(tmp_path), "--kubeconfig", "admin", path=str(tmp_path))

    assert done.returncode == 1
    assert done.stderr == "kubectl is not installed. It is required to create kubeconfigs.\n"
