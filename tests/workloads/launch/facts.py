"""Facts for tests of the launch policy."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.models import User
from workloads.core.policy import ClassFacts, TeamFacts

ALICE = Actor(user=User(pk=1, name="Alice", roles=[]), via="page")

TEAM = TeamFacts(team="Team A", role="member", namespace_wanted="active", workloads=0)

A100 = ClassFacts("a100", "A100", "active", granted=4, borrowing_limit=0, units_per_workload=8, node_units=4)
