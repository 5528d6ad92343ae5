"""`manage.py backup` and `restore`: what a backup says of itself, what is refused before anything is written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from accounts.models import User
from catalog.models import GpuClass
from desk.catalog.file import queries as file_queries
from desk.installation.backup import keys, restoring
from desk.installation.backup.making import back_up
from desk.installation.backup.manifest import (
    FileSum,
    Manifest,
    key_findings,
    schema_findings,
    server_findings,
)
from tenants.models import Namespace
from tests.desk.installation.drill import manage, new_database, programs
from tests.plugin import process_environment
from tests.support.rows import running
from workloads.credentials import sealing
from workloads.models import TeamSecret, Workload

pytestmark = pytest.mark.django_db(transaction=True)
MANIFEST = Manifest(
    made_at="2026-01-01T00:00:00+00:00",
    cluster="main",
    migrations={"accounts": ["0001_initial"]},
    postgresql=18,
    pg_dump="pg_dump (PostgreSQL) 18.0",
    keys={"SECRET_KEY": ["a", "b"]},
    files={"database.dump": FileSum("c", 1)},
)


@pytest.fixture
def backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace_a: Namespace, a100: GpuClass, alice: User
) -> Path:
    """Of a database with a workload and a secret."""
    monkeypatch.setenv("PATH", f"{programs()}{os.pathsep}{os.environ['PATH']}")
    running.workload(namespace_a, a100, by=alice)
    TeamSecret.objects.create(namespace=namespace_a, created_by=alice, name="TOKEN", sealed=sealing.seal("a value"))
    call_command("backup", str(tmp_path / "backup"), stdout=StringIO())
    return tmp_path / "backup"


@pytest.fixture
def other(unique: str) -> Iterator[str]:
    """URL of another database, which is empty."""
    url = process_environment()["DATABASE_URL"].rpartition("/")[0] + f"/restored_{unique}"
    new_database(url)
    yield url
    with psycopg.connect(process_environment()["DATABASE_URL"], autocommit=True) as server:
        server.execute(f'DROP DATABASE "restored_{unique}" WITH (FORCE)')


def check(folder: Path) -> str:
    """What `restore --check` says of a backup that it finds fault with."""
    told = StringIO()
    with pytest.raises(SystemExit):
        call_command("restore", "--check", str(folder), stdout=told)
    return told.getvalue()


def tables(url: str) -> int:
    with psycopg.connect(url) as there:
        found = there.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert found is not None
        return int(found[0])


def test_a_backup_is_restored_into_an_empty_database_and_into_no_other(backup: Path, other: str) -> None:
    there = {"DATABASE_URL": other}
    assert "This backup can be restored here." in manage("restore", "--check", str(backup), **there)
    assert tables(other) == 0
    manage("restore", str(backup), **there)
    with psycopg.connect(other) as restored:
        assert restored.execute("SELECT name FROM workloads_workload").fetchall() == [("one",)]
        assert restored.execute("SELECT count(*) FROM cluster_mirrorepoch").fetchone() == (0,)
    manage("migrate", "--check", **there)
    assert ": 0 encrypted with the current key, 0 cannot be decrypted" in manage("keys", **there)
    Workload.objects.update(name="changed")

    for url in (other, process_environment()["DATABASE_URL"]):
        assert "is not empty. Restore into a new one" in manage("restore", str(backup), code=1, DATABASE_URL=url)
    assert Workload.objects.get().name == "changed"


def test_a_backup_has_fingerprints_and_no_keys_and_is_private(backup: Path, settings: LazySettings) -> None:
    found = json.loads((backup / "manifest.json").read_text())
    assert found["keys"] == keys.inventory()
    assert all(len(fingerprints) == 1 for fingerprints in found["keys"].values())
    assert (backup / "catalog.yaml").read_text() == file_queries.export()
    text = subprocess.run(
        ["pg_restore", "--file=-", str(backup / "database.dump")], capture_output=True, text=True, check=True
    ).stdout
    everything = text + "".join(path.read_text(errors="replace") for path in backup.iterdir())
    assert "workloads_teamsecret" in everything
    assert not [name for name in keys.LOSSES if getattr(settings, name) in everything]
    assert "a value" not in everything
    assert {path.stat().st_mode & 0o777 for path in backup.iterdir()} == {0o600}
    assert backup.stat().st_mode & 0o777 == 0o700
    with pytest.raises(CommandError, match="is not empty"):
        call_command("backup", str(backup))


def test_the_mirror_is_not_in_a_backup(backup: Path, namespace_a: Namespace, tmp_path: Path) -> None:
    running.make_ready(Workload.objects.get())
    back_up(tmp_path / "second", catalog=str)
    text = subprocess.run(
        ["pg_restore", "--file=-", str(tmp_path / "second" / "database.dump")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "one-1-abcde" not in text


@pytest.mark.parametrize("name", ["database.dump", "catalog.yaml"])
def test_damaged_and_missing_files_are_seen(backup: Path, name: str) -> None:
    whole = (backup / name).read_bytes()
    (backup / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert f"no: {name} is damaged: its checksum is not that of the manifest." in check(backup)
    (backup / name).unlink()
    assert f"no: {name} is missing." in check(backup)
    with pytest.raises(CommandError, match="Nothing was restored"):
        call_command("restore", str(backup))


@pytest.mark.parametrize("text", [None, "{", "[]", '{"format": 1}', '{"format": 2}'])
def test_a_folder_without_a_readable_manifest_is_no_backup(backup: Path, text: str | None) -> None:
    (backup / "manifest.json").unlink()
    if text is not None:
        (backup / "manifest.json").write_text(text)
    for options in (["--check"], []):
        with pytest.raises(CommandError, match="Nothing was restored"):
            call_command("restore", *options, str(backup))


def test_a_missing_key_is_said_and_has_to_be_accepted(backup: Path, other: str, settings: LazySettings) -> None:
    pair = PrivateKey.generate().encode(Base64Encoder).decode()
    old = settings.SECRETS_PRIVATE_KEY
    settings.SECRETS_PRIVATE_KEY = pair
    assert "lost: SECRETS_PRIVATE_KEY: no key here has the fingerprint" in check(backup)
    settings.SECRETS_PRIVATE_KEY_FALLBACKS = [old]
    told = StringIO()
    call_command("restore", "--check", str(backup), stdout=told)
    assert "ok: SECRETS_PRIVATE_KEY: the keys of the backup are here" in told.getvalue()

    there = {"DATABASE_URL": other, "SECRETS_PRIVATE_KEY": pair}
    assert "cannot be decrypted" in manage("restore", str(backup), code=1, **there)
    assert tables(other) == 0
    manage("restore", "--accept-loss", str(backup), **there)
    assert tables(other) > 50


def test_the_public_key_alone_decrypts_nothing(backup: Path, settings: LazySettings) -> None:
    settings.SECRETS_PRIVATE_KEY = ""
    assert (
        keys.inventory()["SECRETS_PRIVATE_KEY"]
        == json.loads((backup / "manifest.json").read_text())["keys"]["SECRETS_PRIVATE_KEY"]
    )
    assert "lost: SECRETS_PRIVATE_KEY" in check(backup)


def test_without_the_programs_of_postgresql_it_says_what_to_install(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CommandError, match=r"pg_dump is not installed here\. Install the client programs of PostgreSQL"
    ):
        call_command("backup", str(tmp_path / "second"))
    assert not (tmp_path / "second" / "manifest.json").exists()
    assert "no: pg_restore is not installed here." in check(backup)


def test_a_backup_of_another_cluster_is_refused(backup: Path, settings: LazySettings) -> None:
    settings.CLUSTER_NAME = "other"
    assert "no: The backup is of the cluster main" in check(backup)


def test_a_newer_schema_is_refused_and_an_older_one_is_migrated() -> None:
    wanted = {"accounts": ["0001_initial", "0002_more"]}
    [newer] = schema_findings(wanted, {"accounts": ["0001_initial"]})
    assert newer.is_problem
    assert "accounts.0002_more" in newer.sentence
    [older] = schema_findings(wanted, {"accounts": [*wanted["accounts"], "0003_last"], "cluster": ["0001_initial"]})
    assert not older.is_problem
    assert "2 newer migrations are applied" in older.sentence


@pytest.mark.parametrize(("here", "is_problem"), [(17, True), (18, False), (19, False)])
def test_an_older_server_is_refused(here: int, is_problem: bool) -> None:
    [found] = server_findings(18, here)
    assert found.is_problem is is_problem


def test_every_key_of_the_backup_is_looked_for() -> None:
    losses = {"SECRET_KEY": "All is lost."}
    [missing] = key_findings({"SECRET_KEY": ["a", "b"]}, {"SECRET_KEY": ["b"]}, losses)
    assert (missing.is_loss, "fingerprint a. All is lost." in missing.sentence) == (True, True)
    [there] = key_findings({"SECRET_KEY": ["a", "b"]}, {"SECRET_KEY": ["c", "b", "a"]}, losses)
    assert not there.is_loss
    [unknown] = key_findings({"SECRET_KEY": []}, {"SECRET_KEY": ["a"]}, losses)
    assert not unknown.is_loss
    assert "unknown" in unknown.sentence


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert Manifest.from_json(MANIFEST.to_json()) == MANIFEST
    assert restoring.Manifest.from_json(replace(MANIFEST, files={}).to_json()).files == {}
