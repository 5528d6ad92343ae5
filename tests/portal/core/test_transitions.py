from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from portal.core.errors import Refused
from portal.core.transitions import move_state
from tenants.models import QuotaLine, QuotaRequest, Tenant
from tests.support.threads import in_threads

State = QuotaLine.State


@pytest.fixture
def line(team_a: Tenant, alice: User, a100: GpuClass) -> QuotaLine:
    now = timezone.now()
    request = QuotaRequest.objects.create(tenant=team_a, filed_by=alice, justification="training")
    return QuotaLine.objects.create(
        request=request,
        tenant=team_a,
        gpu_class=a100,
        asked_units=2,
        asked_from=now,
        asked_until=now + timedelta(days=30),
    )


def test_a_move_changes_the_state_and_what_belongs_to_it(line: QuotaLine, dana: User) -> None:
    move_state(QuotaLine, line.pk, to=State.DENIED, decided_by=dana, reason="No capacity before May.")

    line.refresh_from_db()
    assert (line.state, line.decided_by, line.reason) == ("denied", dana, "No capacity before May.")


@pytest.mark.parametrize("state", [State.APPROVED, State.DENIED, State.WITHDRAWN])
def test_what_is_decided_stays_decided(line: QuotaLine, state: str) -> None:
    QuotaLine.objects.filter(pk=line.pk).update(
        state=state, decided_units=2, decided_from=line.asked_from, decided_until=line.asked_until
    )

    with pytest.raises(Refused, match=f"is already {state}") as refused:
        move_state(QuotaLine, line.pk, to=State.DENIED, reason="too late")

    line.refresh_from_db()
    assert refused.value.code == "already_decided"
    assert refused.value.refusal.status == 409
    assert (line.state, line.reason) == (state, "")


def test_what_is_gone_cannot_be_decided(db: None) -> None:
    with pytest.raises(Refused) as refused:
        move_state(QuotaLine, 4711, to=State.DENIED)

    assert refused.value.code == "not_found"


def test_a_state_to_which_nothing_leads_is_a_mistake_of_ours(line: QuotaLine) -> None:
    with pytest.raises(ValueError, match="No state of QuotaLine leads to 'pending'"):
        move_state(QuotaLine, line.pk, to=State.PENDING)


@pytest.mark.django_db(transaction=True)
def test_of_four_who_decide_at_once_exactly_one_succeeds(line: QuotaLine) -> None:
    start = threading.Barrier(4)
    answers: list[str] = []

    def decide() -> None:
        start.wait()
        try:
            move_state(QuotaLine, line.pk, to=State.DENIED, reason=threading.current_thread().name)
            answers.append(threading.current_thread().name)
        except Refused as refused:
            answers.append(refused.code)

    in_threads(4, decide)

    line.refresh_from_db()
    assert sorted(answers) == sorted(["already_decided"] * 3 + [line.reason])
