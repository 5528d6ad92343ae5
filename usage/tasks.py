"""Once a minute: samples the units in use, reads from Prometheus what GPUs did and which have faults, and judges which
runs are idle. Every five minutes: measures budgets.
"""

from celery import shared_task

from usage.faults import collection as fault_collection
from usage.idle import verdicts
from usage.reports import budgets
from usage.samples import sampling
from usage.telemetry import collection


@shared_task(name="usage.samples.sample", ignore_result=True)
def sample_usage() -> None:
    sampling.sample_all()


@shared_task(name="usage.telemetry.read", ignore_result=True)
def read_telemetry() -> None:
    # A verdict is as new as the minute that it reads. The beat judges too, because a silent Prometheus ends verdicts.
    if collection.read_telemetry():
        update_idle_runs.apply_async(queue="background", expires=60)


@shared_task(name="usage.faults.read", ignore_result=True)
def read_gpu_faults() -> None:
    fault_collection.read_faults()


@shared_task(name="usage.idle.update", ignore_result=True)
def update_idle_runs() -> None:
    verdicts.update_idle_runs()


@shared_task(name="usage.budgets.measure", ignore_result=True)
def measure_budgets() -> None:
    budgets.measure_budgets()
