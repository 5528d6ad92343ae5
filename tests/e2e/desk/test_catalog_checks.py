"""The section "Catalog" of the health page in a browser: it changes by itself, and leaves alone what did not change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass, Pool
from cluster.models import Cluster, MirrorEpoch, MirrorKind, MirrorNode
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.browser
# The page asks every 3 s.
SOON_MS = 20_000


@pytest.fixture
def gone(cluster: Cluster) -> GpuClass:
    """A class of a card that nobody has, beside the simulated hardware."""
    mirrored.hardware_seen(cluster)
    return make.gpu_class(cluster, slug="gone", name="Gone", node_labels={"nvidia.com/gpu.product": "GONE"})


def test_a_label_that_contradicts_its_class_comes_and_goes_without_reload(
    open_page: Callable[..., Page], cluster: Cluster, olga: User
) -> None:
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    # No watcher and no worker runs here: nothing grows old or late while the pages are looked at.
    later = timezone.now() + timedelta(minutes=5)
    MirrorEpoch.objects.update(beat_at=later)
    MirrorKind.objects.update(heard_at=later)
    Pool.objects.update(due_at=None)
    page = open_page("/health", as_user=olga)
    checks, verdict = page.get_by_role("region", name="Catalog"), page.locator("#verdict")
    expect(checks).to_contain_text("2 hints")
    expect(verdict).to_contain_text("Healthy: no tasks past due for over 30 s")
    page.evaluate("window.sameDocument = true")

    label(cluster, "a100-1", "nvidia.com/gpu.memory", "40960")
    sentence = "Class A100 SXM4 80GB states memory 81920 MiB, but the labels of a100-1 state 40960 MiB."
    expect(checks).to_contain_text(sentence, timeout=SOON_MS)
    expect(checks).to_contain_text("Correct the class, or add a label to it that excludes these nodes.")
    expect(verdict).to_contain_text("Degraded: 1 catalog problem.")
    look_at(page)

    page.evaluate("window.sameDocument = true")
    label(cluster, "a100-1", "nvidia.com/gpu.memory", "81920")
    expect(checks).not_to_contain_text(sentence, timeout=SOON_MS)
    expect(verdict).to_contain_text("Healthy: no tasks past due for over 30 s")
    assert page.evaluate("window.sameDocument") is True


def label(cluster: Cluster, node: str, name: str, value: str) -> None:
    """As the watcher writes it when the label of a node changes."""
    row = MirrorNode.objects.get(cluster_id=cluster.pk, name=node)
    row.record["labels"][name] = value
    row.save()


def test_only_the_freshness_changes_while_nothing_else_does(
    open_page: Callable[..., Page], gone: GpuClass, olga: User
) -> None:
    page = open_page("/health", as_user=olga)
    page.evaluate("window.before = document.querySelector('#catalog-checks li')")
    MirrorEpoch.objects.update(beat_at=timezone.now() + timedelta(seconds=7))
    seen_at = MirrorEpoch.objects.get().beat_at.isoformat(timespec="seconds")
    expect(page.locator("#catalog-checks-fresh time")).to_have_attribute("datetime", seen_at)
    assert page.evaluate("window.before.isConnected"), "a list being read or copied from is not replaced"
