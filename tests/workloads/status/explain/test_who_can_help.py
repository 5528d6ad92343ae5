"""An explanation sends a person to who can help: whoever typed a name, or the operators; and it claims nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workloads.cases.cluster_objects import NOW, WISH
from tests.workloads.cases.problems import RESOLVE, at_node, ended, failed_clone, pulled_in_vain, told_of
from workloads.core.observation import Observation
from workloads.status.explain.container_start import RegistryAccess
from workloads.status.explain.types import Explanation
from workloads.status.phase import status_of
from workloads.status.types import Status

TYPED = replace(WISH, image="registry.example.org/a:1", sign_in=RegistryAccess("registry.example.org", is_kept=False))
SIGNED_IN = replace(TYPED, sign_in=RegistryAccess("registry.example.org", is_kept=True))
NOT_FOUND = pulled_in_vain(f"{RESOLVE}: docker.io/library/minimal:1: not found")
NO_HOST = pulled_in_vain(f"{RESOLVE}: dial tcp: lookup registry.exmaple.org: no such host")
LIMITED = pulled_in_vain(f"{RESOLVE}: 429 Too Many Requests")


def told(seen: Observation, wish: object = WISH) -> tuple[Status, Explanation]:
    found = status_of(wish, seen, now=NOW)  # type: ignore[arg-type]
    assert found.explained is not None
    return found, found.explained


@pytest.mark.parametrize("seen", [NOT_FOUND, NO_HOST])
def test_only_who_typed_the_name_of_an_image_is_told_to_check_it(seen: Observation) -> None:
    assert "Check the image name" in told(seen, TYPED)[1].remedy
    of_catalog = told(seen)[1].remedy
    assert of_catalog == "Choose another image, and contact an operator: this one is in the portal's catalog."


def test_credentials_are_offered_where_they_would_be_used() -> None:
    assert "Team, Images" in told(LIMITED, TYPED)[1].remedy
    for wish in (SIGNED_IN, WISH):
        assert told(LIMITED, wish)[1].remedy == "It starts automatically when the registry accepts requests again."


@pytest.mark.parametrize("lead", [RESOLVE, 'failed to pull and unpack image "x"', 'Back-off pulling image "x"'])
def test_the_unknown_error_of_a_pull_is_told(lead: str) -> None:
    found, _ = told(at_node("ErrImagePull", f"rpc error: code = Unknown desc = {lead}: ErrImagePull: full moon."))
    assert found.sentence == "Node a100-1 cannot pull the image minimal:1: full moon."
    assert told(at_node("ErrImagePull"))[0].sentence == "Node a100-1 cannot pull the image minimal:1."


def test_an_image_that_names_its_user_is_not_said_to_run_as_root() -> None:
    text = "container has runAsNonRoot and image has non-numeric user (jovyan), cannot verify user is non-root"
    found, explained = told(at_node("CreateContainerConfigError", text))
    assert found.reason == "image_runs_as_root"
    assert found.sentence == (
        "The image minimal:1 names its user (jovyan), so node a100-1 cannot tell that it does not run as root."
    )
    assert "number of its user" in explained.remedy


@pytest.mark.parametrize(
    ("volume", "named", "words"),
    [
        ("data", "pvc-4d70", "the volume data (pvc-4d70)"),
        ("", "pvc-4d70", "the volume pvc-4d70"),
        ("data", "kube-api-access-7x", "the volume kube-api-access-7x"),
    ],
)
def test_a_volume_has_the_name_that_the_team_gave_it(volume: str, named: str, words: str) -> None:
    seen = told_of("FailedMount", f'MountVolume.SetUp failed for volume "{named}" : exit status 32')
    assert told(seen, replace(WISH, volume=volume))[0].sentence == f"Node a100-1 cannot mount {words}."


NONE_SEEN = "RuntimeError: No CUDA GPUs are available\n"


def test_a_program_without_a_gpu_because_its_class_has_none() -> None:
    found, _ = told(ended(1, message=NONE_SEEN, requests={"memory": 2**30, "cpu": 1000}))
    assert found.reason == "gpu_not_requested"
    assert found.sentence == "Its last log lines report that no GPU is accessible. Its class gives it none."
    assert "change" in found.actions
    claimed = ended(1, message=NONE_SEEN, requests={"memory": 2**30}, claims=("one-gpu",))
    for seen in (ended(1, message=NONE_SEEN), claimed):
        assert told(seen)[0].reason == "gpu_not_visible"


@pytest.mark.parametrize("code", [401, 403])
def test_a_git_server_that_denies_access_responds(code: int) -> None:
    text = f"fatal: unable to access 'https://git.example.org/a.git/': The requested URL returned error: {code}"
    found, _ = told(failed_clone(128, text))
    assert (found.reason, "authentication at https://git.example.org/a.git" in found.sentence) == (
        "repository_private", True,
    )  # fmt: skip


@pytest.mark.parametrize("code", [3, 137, 143])
def test_how_long_a_log_is_kept_is_not_said_here(code: int) -> None:
    """The class decides it."""
    assert told(ended(code))[1].remedy == "See the log."
