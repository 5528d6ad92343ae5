"""What a device trial asks the cluster, and how often it asks again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

# Kueue reads its mapping when it starts: what it counts is asked again in case it was started with another one.
AGAIN_AFTER = timedelta(minutes=15)
# What somebody may be repairing right now.
RETRY_AFTER = timedelta(minutes=1)
# Kueue decides within a second. Without an answer until then the verdict is "unknown".
ANSWER_WITHIN = timedelta(minutes=1)


@dataclass(frozen=True, order=True)
class DeviceRequest:
    """One device of a device class. `selector` "": any device of it, which shows what Kueue counts it as."""

    device_class: str
    selector: str = ""

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.device_class}\n{self.selector}".encode()).hexdigest()
