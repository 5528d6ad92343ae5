"""Rows are deleted when their time is over and nothing needs them, and history is in a file before."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import Delivery, Event, User
from desk import tasks
from desk.retention import archive, deletion
from desk.retention.archive import ArchiveUnclear
from portal.celery import app
from tests.plugin import process_environment
from tests.support.database_roles import in_role

pytestmark = pytest.mark.django_db

# Separators of lines for Python, not for JSON.
BODY = "Two\nlines, a \u2028 separator and a \x85."


def emails(user: User, *, number: int, days: int, **fields: Any) -> list[Delivery]:
    """Sent so many days ago, one a minute."""
    event = Event.objects.create(actor="Alice", via="page", verb="a.b", row=f"r.{days}.{len(fields)}")
    at = timezone.now() - timedelta(days=days)
    rows = [
        Delivery(
            **{"event": Event.objects.create(actor="Alice", via="page", verb="a.b", row=event.row), "user": user}
            | {"subject": f"s {n}", "body": BODY, "due_at": None, "sent_at": at + timedelta(minutes=n)}
            | fields
        )
        for n in range(number)
    ]
    return Delivery.objects.bulk_create(rows)


def retention(*arguments: str) -> str:
    told = StringIO()
    with in_role("worker"):
        call_command("retention", *arguments, stdout=told)
    return told.getvalue()


def archived(folder: Path) -> list[dict[str, Any]]:
    """The rows of all complete bundles, after a check of their manifests by an independent reader."""
    found = []
    for manifest in sorted((folder / "emails").glob("*.json")):
        said = json.loads(manifest.read_text())
        content = (manifest.parent / said["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == said["sha256"]
        rows = [json.loads(line) for line in gzip.decompress(content).split(b"\n")[:-1]]
        assert len(rows) == said["rows"]
        times = [datetime.fromisoformat(row["sent_at"]) for row in rows]
        assert (min(times).isoformat(), max(times).isoformat()) == (said["since"], said["until"])
        assert (said["kind"], said["table"]) == ("emails", "accounts_delivery")
        found += rows
    return found


def test_sent_emails_are_archived_and_deleted_and_others_stay(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "BUNDLE_ROWS", 3)
    old = emails(alice, number=7, days=92)
    recent = emails(alice, number=1, days=89)
    waiting = emails(alice, number=1, days=92, sent_at=None, due_at=timezone.now())
    again = emails(alice, number=1, days=92, due_at=timezone.now())
    assert "emails: 7 rows would be deleted" in retention("--archive", str(tmp_path), "--dry-run")
    assert Delivery.objects.count() == 10
    assert not [*tmp_path.iterdir()]

    assert "emails: 7 rows deleted" in retention("--archive", str(tmp_path))

    assert {*Delivery.objects.all()} == {*recent, *waiting, *again}
    rows = archived(tmp_path)
    assert sorted(row["id"] for row in rows) == [one.pk for one in old]
    assert {row["body"] for row in rows} == {BODY}
    assert len([*(tmp_path / "emails").glob("*.gz")]) == 3
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "emails").glob("*.*")} == {0o600}
    assert "emails: 0 rows deleted" in retention("--archive", str(tmp_path))
    assert len(archived(tmp_path)) == 7


class Died(BaseException):
    """A process that ends at this call."""


def dying(monkeypatch: pytest.MonkeyPatch, *, at: int, before: bool) -> list[str]:
    """The process ends at the `at`-th change of a file, before or after it."""
    done: list[str] = []

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def one(*args: Any) -> Any:
            done.append(name)
            if len(done) == at and before:
                raise Died
            call(*args)
            if len(done) == at:
                raise Died

        return one

    for name in ("_write", "_sync", "_move"):
        monkeypatch.setattr(archive, name, wrapped(name, getattr(archive, name)))
    return done


@pytest.mark.parametrize("before", [True, False])
def test_a_process_that_ends_anywhere_loses_no_row_and_archives_none_twice(
    before: bool, alice: User, tmp_path: Path
) -> None:
    at, completed = 0, False
    while not completed:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        keys = {one.pk for one in emails(alice, number=3, days=92)}
        with pytest.MonkeyPatch.context() as monkeypatch:
            done = dying(monkeypatch, at=at, before=before)
            try:
                deletion.delete_expired(folder)
                completed = True
            except Died:
                assert len(done) == at
        there = {*Delivery.objects.values_list("pk", flat=True)}
        in_files = {
            json.loads(line)["id"]
            for path in folder.rglob("*.gz")
            for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]
        }
        assert there | in_files >= keys, f"a row is lost at change {at}"
        # Meanwhile more rows are old enough.
        keys |= {one.pk for one in emails(alice, number=2, days=93)}

        deletion.delete_expired(folder)

        assert sorted(row["id"] for row in archived(folder)) == sorted(keys), f"after the end at change {at}"
        assert not Delivery.objects.exists()
        assert not [*(folder / "emails" / "pending").iterdir()]
    assert at > 10, f"only {at} changes of files were tried"


def test_a_pending_bundle_whose_rows_differ_is_left_for_people(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one] = emails(alice, number=1, days=92)
    with monkeypatch.context() as patched:
        dying(patched, at=4, before=False)
        with pytest.raises(Died):
            deletion.delete_expired(tmp_path)
    Delivery.objects.update(subject="another")

    with pytest.raises(ArchiveUnclear, match="differ"):
        deletion.delete_expired(tmp_path)
    with pytest.raises(CommandError, match="differ"):
        retention("--archive", str(tmp_path))

    assert Delivery.objects.get() == one
    assert len([*(tmp_path / "emails" / "pending").iterdir()]) == 2


def test_a_damaged_file_stops_the_deletion(alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emails(alice, number=1, days=92)
    write = archive._write
    monkeypatch.setattr(archive, "_write", lambda path, content: write(path, content[:-1]))

    with pytest.raises(OSError, match="damaged"):
        deletion.delete_expired(tmp_path)

    assert Delivery.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_processes_do_not_archive_the_same_rows(alice: User, tmp_path: Path) -> None:
    emails(alice, number=2, days=92)
    with psycopg.connect(process_environment()["DATABASE_URL"]) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('portal.retention.emails'))")
        assert deletion.delete_expired(tmp_path)["emails"] == 0
        assert not [*tmp_path.rglob("*.gz")]

    assert deletion.delete_expired(tmp_path)["emails"] == 2
    assert len(archived(tmp_path)) == 2


def test_without_a_folder_history_stays_and_expired_sessions_go(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "BUNDLE_ROWS", 2)
    emails(alice, number=1, days=400)
    now = timezone.now()
    for number in range(5):
        Session.objects.create(session_key=f"old{number}", expire_date=now - timedelta(days=3, minutes=number))
    Session.objects.create(session_key="ended", expire_date=now - timedelta(minutes=1))
    Session.objects.create(session_key="valid", expire_date=now + timedelta(days=1))

    deleted = deletion.delete_expired(None)

    assert deleted == {"emails": 0, "sessions": 5}
    assert {*Session.objects.values_list("session_key", flat=True)} == {"ended", "valid"}
    assert Delivery.objects.count() == 1


def test_beat_asks_for_it_and_the_task_archives_to_the_folder_of_the_setting(
    alice: User, tmp_path: Path, settings: LazySettings
) -> None:
    [entry] = [one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == "desk.retention.delete"]
    assert entry["options"]["queue"] == "background"
    assert tasks.WITHIN_S < settings.TASK_LIMIT_S / 2
    settings.RETENTION_ARCHIVE = str(tmp_path)
    emails(alice, number=2, days=92)
    app.autodiscover_tasks(force=True)

    app.tasks[entry["task"]].run()

    assert not Delivery.objects.exists()
    assert len(archived(tmp_path)) == 2


def test_a_task_ends_in_time_and_the_next_one_goes_on(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "BUNDLE_ROWS", 2)
    emails(alice, number=5, days=92)
    seconds = itertools.count()
    monkeypatch.setattr(deletion.time, "monotonic", lambda: float(next(seconds)))

    # The clock is read once at the begin and before each bundle: sessions at 1, then emails at 2 and 3.
    deleted = deletion.delete_expired(tmp_path, within_s=4)

    assert deleted == {"sessions": 0, "emails": 4}
    assert deletion.delete_expired(tmp_path) == {"sessions": 0, "emails": 1}
    assert len(archived(tmp_path)) == 5


def test_sessions_are_deleted_although_the_folder_is_gone(alice: User, tmp_path: Path) -> None:
    emails(alice, number=1, days=92)
    Session.objects.create(session_key="old", expire_date=timezone.now() - timedelta(days=3))

    with pytest.raises(FileNotFoundError, match="not-mounted"):
        deletion.delete_expired(tmp_path / "not-mounted")

    assert not Session.objects.exists()
    assert Delivery.objects.count() == 1


def test_rows_become_due_at_midnight(alice: User, time_machine: Any) -> None:
    time_machine.move_to(datetime(2026, 11, 27, 12, tzinfo=UTC))
    for hours_before_noon in (11, 13):
        sent_at = timezone.now() - timedelta(days=90, hours=hours_before_noon)
        emails(alice, number=1, days=90, sent_at=sent_at)

    assert deletion.count_expired()["emails"] == 1


def test_emails_that_are_old_enough_are_found_by_an_index(alice: User) -> None:
    [kind] = [kind for kind in deletion.EXPIRING if kind.name == "emails"]
    event = Event.objects.create(actor="Alice", via="page", verb="a.b", row="r")
    now = timezone.now()
    Delivery.objects.bulk_create(
        Delivery(
            event=event,
            address=f"{n}@example.org",
            subject="s",
            body="b",
            due_at=None,
            sent_at=now - timedelta(minutes=30 * n),
        )
        for n in range(5000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_delivery")
        where = deletion._is_expired(kind).as_string(cursor.connection)
        cursor.execute(f"EXPLAIN SELECT id FROM accounts_delivery WHERE {where} ORDER BY sent_at LIMIT 1000")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan using delivery_sent" in plan


def test_the_command_refuses_what_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not a folder"):
        retention("--archive", str(tmp_path / "none"))
    with pytest.raises(CommandError, match="goes with --archive"):
        retention("--dry-run")
