"""Once a minute: samples the units in use, and reads from Prometheus what GPUs did."""

from celery import shared_task

from usage.samples import sampling
from usage.telemetry import collection


@shared_task(name="usage.samples.sample", ignore_result=True)
def sample_usage() -> None:
    sampling.sample_all()


@shared_task(name="usage.telemetry.read", ignore_result=True)
def read_telemetry() -> None:
    collection.read_telemetry()
