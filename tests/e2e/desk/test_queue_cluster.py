"""The pages Queue and Cluster in a browser: narrow and wide, light and dark, for assistive technology."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.support.rows import running

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_queue_and_cluster(
    open_page: Callable[..., Page], a100: GpuClass, namespace_a: Namespace, alice: User, olga: User
) -> None:
    running.known(namespace_a.cluster_id)
    running.workload(namespace_a, a100, by=alice)
    look_at(open_page("/queue", as_user=olga))
    look_at(open_page("/cluster", as_user=olga))
