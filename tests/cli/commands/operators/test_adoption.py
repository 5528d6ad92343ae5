"""`gpu ops adoption`: what the page of adoptions does, from a shell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from accounts.models import User
from cluster.models import Cluster
from operations.models import Adoption
from tests.cli.command import Gpu
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
OPS = ("ops", "adoption")


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], olga: User, cluster: Cluster) -> Gpu:
    found = mirrored.with_metadata({"kind": "Namespace", "metadata": {"name": "found"}})
    mirrored.hardware_seen(cluster, Namespace=[found])
    return gpu_of(olga, "read", "admin")


def test_propose_list_show_and_undo(gpu: Gpu, alice: User) -> None:
    made = gpu(*OPS, "propose", "found", "--slug", "finders", "--name", "Finders", "--owner", alice.email)
    assert (made.code, made.err) == (0, "")
    row = Adoption.objects.get()
    assert made.out.startswith("Adoption of found by team finders: ")
    assert "proposed: " in made.out
    assert (row.namespace.name, row.namespace.tenant.slug) == ("found", "finders")
    loss = {"effect": "lost", "code": "network", "kind": "Pod", "name": "all", "text": "Not reached any more."}
    Adoption.objects.update(findings=[loss], read_at=timezone.now())
    listed = gpu(*OPS, "list").out.splitlines()
    assert (listed[0].split()[:3], listed[1].split()[:2]) == (["TEAM", "NAMESPACE", "STATE"], ["finders", "found"])
    shown = gpu(*OPS, "show", "finders")
    assert "lost    Pod   all   Not reached any more." in shown.out
    assert "The owner has to accept 1 of these." in shown.out
    assert gpu(*OPS, "show", "finders", "--json").json["losses"] == ["network Pod all"]
    Adoption.objects.update(adopted_at=timezone.now())
    undone = gpu(*OPS, "undo", "finders")
    assert undone.code == 0
    row.refresh_from_db()
    assert undone.out.startswith("Adoption of found by team finders: ")


def test_a_refusal_is_the_portals_own(gpu: Gpu, alice: User, gpu_of: Callable[..., Gpu], bob: User) -> None:
    words = ("--slug", "x", "--name", "X", "--owner", alice.email)
    refused = gpu(*OPS, "propose", "no-such", *words, "--json")
    assert (refused.code, refused.json["code"]) == (6, "bad_adoption")
    assert gpu_of(bob, "read", "admin")(*OPS, "propose", "found", *words).code == 6
    assert not Adoption.objects.exists()
