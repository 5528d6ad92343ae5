"""What happens to a run at a drain, read from its row and the maintenance: for pages, mails, the API and the drain."""

from __future__ import annotations

from dataclasses import dataclass

from operations.maintenance.choices import policy
from operations.models import Maintenance
from workloads.models import Run


@dataclass(frozen=True)
class AtDrain:
    """`what`: one of policy.OUTCOMES. `choice`: what was chosen, "" if nobody chose. `if_there`: what happens to the
    run if it has not ended by then; it differs from `what` for one that ends before.
    """

    what: str
    choice: str
    if_there: str

    @property
    def is_chosen(self) -> bool:
        """Whether it happens because somebody chose it."""
        return self.what == self.choice


def at_drain(row: Maintenance, run: Run) -> AtDrain:
    """`row` may be unsaved: then nobody has chosen."""
    choice = policy.chosen(run.drain_choices, row.pk)
    is_leaving = run.drain_requested_at is not None
    if_there = policy.if_there(choice, has_queue=row.cluster.has_kueue, is_leaving=is_leaving)
    is_over = policy.ends_before(run.ends_at, row.starts_at, is_stopping=run.stop_requested_at is not None)
    return AtDrain(policy.ENDS_BEFORE if is_over else if_there, choice, if_there)
