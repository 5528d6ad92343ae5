"""The demo's people and catalog: made once, true of the hardware, and left alone by the next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounts.models import Event
from catalog.images import compatibility
from catalog.models import GpuClass, Image
from catalog.queries.hardware import class_facts
from cluster.models import Cluster
from devcluster import seed
from tests import mirrored


@pytest.mark.django_db
def test_a_second_start_finds_everything_as_it_is(tmp_path: Path) -> None:
    accounts = tmp_path / "accounts.json"
    seed.main("people", accounts)
    cluster = Cluster.objects.get()
    mirrored.hardware_seen(cluster, "mixed")
    seed.main("catalog", accounts)
    events = Event.objects.count()
    seed.main("people", accounts)
    seed.main("catalog", accounts)
    assert Event.objects.count() == events

    with_terms = GpuClass.objects.exclude(terms_version=0)
    assert [one.sharing for one in with_terms] == ["mps"]
    facts = class_facts(cluster, GpuClass.objects.exclude(vendor="")).values()
    for image in Image.objects.all():
        fitting = {one.vendor for one in facts if not compatibility(image, one)}
        assert image.vendor in fitting or not image.vendor
