"""Device trials on the real API server and the real Kueue, as the worker makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import system_actor
from catalog.classes import actions
from catalog.models import DeviceTrial, GpuClass
from catalog.trials.objects import NAMESPACE
from catalog.trials.queries import device_requests, trials
from catalog.trials.reconcile import try_devices
from catalog.trials.types import AGAIN_AFTER, ANSWER_WITHIN, DeviceRequest
from catalog.trials.verdicts import answer_of_kueue
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from portal.core.due import Deadline
from portal.core.errors import Refused
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

WORKLOADS = "kueue.x-k8s.io/v1beta2/workloads"
TEMPLATES = "resource.k8s.io/v1/resourceclaimtemplates"
QUEUE = "kueue.x-k8s.io/v1beta2/clusterqueues"
H100 = "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'"
Verdict = DeviceTrial.Verdict
Try = Callable[..., dict[DeviceRequest, DeviceTrial]]


@pytest.fixture
def uncounted(admin: Api, unique: str) -> Iterator[str]:
    """A device class that Kueue does not map."""
    name = f"trial-{unique}.example"
    admin.create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}})
    yield name
    admin.delete("resource.k8s.io/v1/deviceclasses", name)


@pytest.fixture
def attempt(cluster: Cluster, kube_worker: Kube, admin: Api) -> Iterator[Try]:
    """Takes steps until every trial has an outcome."""

    def attempt(*wanted: DeviceRequest) -> dict[DeviceRequest, DeviceTrial]:
        def is_tried() -> bool:
            try_devices(cluster, wanted, kube=kube_worker, deadline=Deadline(), now=timezone.now())
            return set(wanted) <= trials(cluster).keys()

        wait_until(is_tried)
        return trials(cluster)

    yield attempt
    admin.delete("kueue.x-k8s.io/v1beta2/localqueues", "gpu-portal", namespace=NAMESPACE)
    admin.delete(QUEUE, NAMESPACE)


def told(found: dict[DeviceRequest, DeviceTrial], one: DeviceRequest) -> tuple[str, str]:
    return found[one].verdict, found[one].resource


def test_kueue_says_what_it_counts_a_device_class_as(attempt: Try, uncounted: str, admin: Api) -> None:
    gpu, mig, amd = (DeviceRequest(name) for name in ("gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com"))
    other = DeviceRequest(uncounted)
    found = attempt(gpu, mig, amd, other)
    assert told(found, gpu) == (Verdict.COUNTED, "dra.portal/h100")
    assert told(found, mig) == (Verdict.COUNTED, "dra.portal/mig")
    assert told(found, amd) == (Verdict.COUNTED, "dra.portal/amd")
    assert told(found, other) == (Verdict.NOT_COUNTED, "")
    assert uncounted in found[other].text
    # Nothing is left, and there was never anything to give.
    assert [*admin.list(WORKLOADS, namespace=NAMESPACE), *admin.list(TEMPLATES, namespace=NAMESPACE)] == []
    queue = admin.get(QUEUE, NAMESPACE)
    (group,) = queue["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == "0"
    assert "cohortName" not in queue["spec"]


@pytest.mark.parametrize(
    ("selector", "verdict", "words"),
    [
        (H100, Verdict.COUNTED, ""),
        ("device.foo == 1", Verdict.REFUSED, "1:7: undefined field 'foo'"),
        ("device.attributes['memory'] >= 40000", Verdict.REFUSED, "1:29: found no matching overload for '_>=_'"),
        ("device.attributes['gpu.nvidia.com'].memory >= 40000", Verdict.FAILED, "no such key: memory"),
        ("device.driver == 'nobody'", Verdict.NO_DEVICE, "0 device(s) match"),
    ],
)
def test_a_selector_is_tried_on_the_cluster(attempt: Try, selector: str, verdict: Verdict, words: str) -> None:
    one = DeviceRequest("gpu.nvidia.com", selector)
    found = attempt(one)[one]
    assert found.verdict == verdict
    assert words in found.text


def test_a_cluster_without_kueue_is_asked_about_the_selector_only(attempt: Try, cluster: Cluster, admin: Api) -> None:
    cluster.queue_system = Cluster.QueueSystem.NONE
    cluster.save()
    good, bad = DeviceRequest("gpu.nvidia.com", H100), DeviceRequest("gpu.nvidia.com", "device.foo == 1")
    found = attempt(good, bad)
    assert (found[good].verdict, found[bad].verdict) == (Verdict.ACCEPTED, Verdict.REFUSED)
    assert admin.list(TEMPLATES, namespace=NAMESPACE) == []


def test_a_trial_that_nobody_wants_any_more_is_removed(
    cluster: Cluster, kube_worker: Kube, admin: Api, attempt: Try
) -> None:
    one = DeviceRequest("gpu.nvidia.com", "device.driver == 'given up'")
    try_devices(cluster, [one], kube=kube_worker, deadline=Deadline(), now=timezone.now())
    assert admin.list(TEMPLATES, namespace=NAMESPACE) != []
    try_devices(cluster, [], kube=kube_worker, deadline=Deadline(), now=timezone.now())
    assert admin.list(TEMPLATES, namespace=NAMESPACE) == []
    assert admin.list(WORKLOADS, namespace=NAMESPACE) == []
    assert not DeviceTrial.objects.exists()


def test_silence_of_kueue_is_unknown_and_forgets_nothing(cluster: Cluster, attempt: Try, kube_worker: Kube) -> None:
    """A Workload in whose queue nothing is decided: as if Kueue did not run."""
    one = DeviceRequest("gpu.nvidia.com")
    attempt(one)
    row = DeviceTrial.objects.get()
    later = timezone.now() + AGAIN_AFTER
    kube_worker.delete("LocalQueue", name="gpu-portal", namespace=NAMESPACE)

    def step(at: timedelta) -> None:
        try_devices(cluster, [one], kube=kube_worker, deadline=Deadline(), now=later + at)
        row.refresh_from_db()

    step(timedelta(0))
    assert row.began_at is not None
    step(ANSWER_WITHIN)
    assert (row.began_at, row.verdict, row.resource) == (None, Verdict.COUNTED, "dra.portal/h100")
    assert row.text == "Kueue has not answered."


def test_an_admitted_trial_shows_that_no_device_is_counted() -> None:
    reserved = {"type": "QuotaReserved", "status": "True", "message": "Quota reserved in ClusterQueue"}
    found = answer_of_kueue({"conditions": [reserved]})
    assert found is not None
    assert found.verdict == Verdict.NOT_COUNTED
    assert answer_of_kueue({}) is None
    waiting = {"type": "QuotaReserved", "status": "False", "message": "ClusterQueue x is inactive"}
    assert answer_of_kueue({"conditions": [waiting]}) is None


# ---- what follows -------------------------------------------------------------------------------------------------


def draft(cluster: Cluster, **fields: str) -> GpuClass:
    values = {"device_class": "gpu.nvidia.com", "resource": "dra.portal/h100", "device_selector": H100, **fields}
    return make.gpu_class(cluster, slug="dra", interface="dra", life_cycle="draft", **values)


def mig(cluster: Cluster, slug: str, **fields: str) -> GpuClass:
    counted = {"device_class": "mig.nvidia.com", "resource": "dra.portal/mig"}
    return make.gpu_class(cluster, slug=slug, interface="dra", life_cycle="draft", **counted, **fields)


def tried(gpu_class: GpuClass, verdict: Verdict, *, selector: str = "", **fields: str) -> None:
    one = DeviceRequest(gpu_class.device_class, selector)
    DeviceTrial.objects.create(
        cluster=gpu_class.cluster, key=one.key, device_class=one.device_class, selector=selector, verdict=verdict,
        tried_at=timezone.now(), **fields,
    )  # fmt: skip


def test_what_is_tried_are_the_classes_and_the_devices_that_are_there(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, "dra")
    one = draft(cluster, device_class="site.example")
    retired = make.gpu_class(
        cluster, slug="old", interface="dra", device_class="old.example", resource="a/b", device_selector="true",
        life_cycle="retired",
    )  # fmt: skip
    asked = device_requests(cluster)
    assert {DeviceRequest("site.example"), DeviceRequest("site.example", one.device_selector)} <= asked
    assert {request.device_class for request in asked if not request.selector} == {
        *("gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com", "site.example")
    }
    assert retired.device_class not in {request.device_class for request in asked}


@pytest.mark.parametrize(
    ("verdict", "selector", "fields", "code", "field"),
    [
        (Verdict.NOT_COUNTED, "", {}, "not_counted", "device_class"),
        (Verdict.COUNTED, "", {"resource": "dra.portal/other"}, "not_counted", "resource"),
        (Verdict.REFUSED, H100, {"text": "1:7: undefined field 'foo'"}, "bad_cel", "device_selector"),
        (Verdict.FAILED, H100, {"text": "no such key: memory"}, "bad_cel", "device_selector"),
    ],
)
def test_a_class_that_the_cluster_would_never_admit_is_not_opened(
    cluster: Cluster, verdict: Verdict, selector: str, fields: dict[str, str], code: str, field: str
) -> None:
    one = draft(cluster)
    tried(one, verdict, selector=selector, **fields)
    with pytest.raises(Refused) as refused:
        actions.activate(one.pk, by=system_actor("test"))
    assert (refused.value.refusal.code, refused.value.refusal.field) == (code, field)
    assert fields.get("text", "") in refused.value.refusal.message


@pytest.mark.parametrize(
    ("verdict", "selector", "fields"),
    [
        (Verdict.COUNTED, "", {"resource": "dra.portal/h100"}),
        (Verdict.UNKNOWN, "", {}),
        (Verdict.NO_DEVICE, H100, {}),
        # Of a selector that it had before.
        (Verdict.REFUSED, "device.foo == 1", {}),
    ],
)
def test_what_is_unknown_or_may_come_keeps_no_class_closed(
    cluster: Cluster, verdict: Verdict, selector: str, fields: dict[str, str]
) -> None:
    one = draft(cluster)
    tried(one, verdict, selector=selector, **fields)
    actions.activate(one.pk, by=system_actor("test"))
    one.refresh_from_db()
    assert one.life_cycle == "active"


def test_two_slices_of_one_card_are_two_open_classes(cluster: Cluster) -> None:
    """One resource and the same nodes: their claims cannot take each other's devices."""
    selector = "device.attributes['gpu.nvidia.com'].profile == '{}'"
    for profile in ("1g.10gb", "3g.40gb"):
        fields = {"partition": profile, "device_selector": selector.format(profile), "product": "NVIDIA H100 80GB HBM3"}
        one = mig(cluster, f"mig-{profile[0]}", **fields)
        actions.activate(one.pk, by=system_actor("test"))
    same = mig(cluster, "any-mig", device_selector="true")
    with pytest.raises(Refused) as refused:
        actions.activate(same.pk, by=system_actor("test"))
    assert refused.value.refusal.code == "selector_overlaps"


def test_a_capacity_read_as_an_attribute_is_refused_at_its_field_when_the_class_is_saved(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    one = draft(cluster)
    wrong = "device.attributes['gpu.nvidia.com'].memory >= 40000"
    with pytest.raises(Refused) as refused:
        actions.edit_class(one.pk, device_selector=wrong, by=system_actor("test"))
    assert (refused.value.refusal.code, refused.value.refusal.field) == ("bad_cel", "device_selector")
    assert "compareTo(quantity(" in refused.value.refusal.message
