"""Once a minute: samples the units in use."""

from celery import shared_task

from usage.samples import sampling


@shared_task(name="usage.samples.sample", ignore_result=True)
def sample_usage() -> None:
    sampling.sample_all()
