"""The portal's background processes, and the emails that they send."""

from __future__ import annotations

import email
import email.policy
from dataclasses import dataclass
from pathlib import Path

from accounts.models import User
from devcluster.processes.supervisor import Supervisor


@dataclass(frozen=True)
class Portal:
    """The portal's background processes, and the folder of its emails."""

    supervisor: Supervisor
    mail: Path

    def mails(self, to: User) -> list[str]:
        """Subjects of the emails sent to a user."""
        parts = [part for file in self.mail.glob("*.log") for part in file.read_bytes().split(b"-" * 79)]
        found = [email.message_from_bytes(part.strip(), policy=email.policy.default) for part in parts]
        return [str(one["Subject"]) for one in found if to.email in str(one["To"])]

    def story(self) -> str:
        return "\n".join(f"--- {name}\n{run.last_lines(12)}" for name, run in self.supervisor.running.items())
