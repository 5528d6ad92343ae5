"""The key of the notebooks' tokens is replaced: running notebooks stay open, new ones have tokens of the new key."""

from __future__ import annotations

import base64

import pytest
from django.conf import LazySettings

from accounts.core.actor import Actor
from cluster.manifests.run_spec import RunSpec
from tenants.models import Tenant
from workloads.credentials.notebook_token import notebook_token, token_of_run
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.runs.objects.run_secret import run_secret_manifest

pytestmark = pytest.mark.django_db


def sent(run: Run) -> str:
    """The token that the worker sends to the cluster."""
    secret = run_secret_manifest(run.workload, run, RunSpec.from_json(run.spec), job_uid="1")
    assert secret is not None
    return base64.b64decode(secret["data"]["token"]).decode()


def computed(run: Run) -> str:
    """The token with which doors and the worker ask the notebook."""
    run.refresh_from_db()
    return token_of_run(run.token_key, workload_id=run.workload_id, run_number=run.number)


@pytest.fixture
def run(granted: Tenant, notebook: LaunchSpec, by_alice: Actor) -> Run:
    return actions.launch("team-a", notebook, by=by_alice).runs.get()


def replace_key(settings: LazySettings, new: str) -> None:
    settings.NOTEBOOK_TOKEN_KEY_FALLBACKS = [settings.NOTEBOOK_TOKEN_KEY, *settings.NOTEBOOK_TOKEN_KEY_FALLBACKS]
    settings.NOTEBOOK_TOKEN_KEY = new


def test_a_running_notebook_keeps_its_token_through_two_keys(run: Run, settings: LazySettings) -> None:
    token = sent(run)
    replace_key(settings, "the second key")
    assert computed(run) == token
    replace_key(settings, "the third key")
    assert computed(run) == token
    assert sent(Run.objects.get(pk=run.pk)) == token, "a Secret that is made again has the token that its pod may have"
    settings.NOTEBOOK_TOKEN_KEY_FALLBACKS = []
    assert computed(run) != token, "what is signed with a key that is gone opens nothing"


def test_a_notebook_started_since_has_a_token_of_the_new_key(run: Run, settings: LazySettings) -> None:
    replace_key(settings, "the second key")
    token = sent(run)
    assert token == notebook_token("the second key", workload_id=run.workload_id, run_number=run.number)
    settings.NOTEBOOK_TOKEN_KEY_FALLBACKS = []
    assert computed(run) == token


def test_one_from_before_its_key_was_recorded_has_the_oldest(run: Run, settings: LazySettings) -> None:
    token = sent(run)
    Run.objects.update(token_key="")
    replace_key(settings, "the second key")
    assert computed(run) == token


def test_the_row_contains_no_key(run: Run, settings: LazySettings) -> None:
    sent(run)
    run.refresh_from_db()
    assert len(run.token_key) == 16
    assert run.token_key not in settings.NOTEBOOK_TOKEN_KEY


def test_without_a_key_nothing_is_sent(run: Run, settings: LazySettings) -> None:
    settings.NOTEBOOK_TOKEN_KEY = ""
    with pytest.raises(ValueError, match="NOTEBOOK_TOKEN_KEY is not set"):
        sent(run)
    run.refresh_from_db()
    assert run.token_key == ""
