"""Once a minute: samples the units in use. Every five minutes: measures budgets."""

from celery import shared_task

from usage.reports import budgets
from usage.samples import sampling


@shared_task(name="usage.samples.sample", ignore_result=True)
def sample_usage() -> None:
    sampling.sample_all()


@shared_task(name="usage.budgets.measure", ignore_result=True)
def measure_budgets() -> None:
    budgets.measure_budgets()
