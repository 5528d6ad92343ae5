"""`gpu notices`."""

from __future__ import annotations

import pytest

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import User
from tests.cli.command import Gpu

pytestmark = pytest.mark.django_db


def test_the_command_lists_and_marks_what_it_listed(gpu: Gpu, bob: User) -> None:
    deliver(record(system_actor("test"), "member.changed", bob), [bob], subject="First", body="Text.")
    assert "First" in gpu("notices").out
    assert "First" in gpu("notices", "--read").out
    assert "First" not in gpu("notices").out
    assert [one["subject"] for one in gpu("notices", "--all", "--json").json["items"]] == ["First"]
