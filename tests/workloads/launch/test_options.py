"""The run options that a user may set. Tables: typed values in, code and words out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workloads.launch import options
from workloads.launch.options import OptionBounds, Options

TWO_A100 = OptionBounds("A100", 2, cpu=8, memory_gib=32, run_hours=12)
GITHUB = "https://github.com/owner/name.git"


@pytest.mark.parametrize(
    ("said", "code", "field", "words"),
    [
        ({}, None, None, ""),
        ({"cpu": 8, "memory_gib": 32, "shared_memory_gib": 32}, None, None, ""),
        ({"cpu": 9}, "bad_size", "cpu", "9 cores requested; 2 units of A100 allow 1 to 8"),
        ({"cpu": 0}, "bad_size", "cpu", "0 cores requested"),
        ({"memory_gib": 33}, "bad_size", "memory_gib", "33 GiB of memory requested; 2 units of A100 allow 1 to 32"),
        ({"shared_memory_gib": 33}, "bad_size", "shared_memory_gib", "Enter 1 to 32 GiB"),
        (
            {"memory_gib": 4, "shared_memory_gib": 5},
            "bad_size",
            "shared_memory_gib",
            "part of the memory. Enter 1 to 4 GiB",
        ),
        ({"mount_path": "/home/work"}, None, None, ""),
        ({"mount_path": "/home/work/data/v1.2"}, None, None, ""),
        ({"mount_path": "/etc"}, "bad_path", "mount_path", "'/etc' is not valid"),
        ({"mount_path": "/home/workshop"}, "bad_path", "mount_path", ""),
        ({"mount_path": "/home/work/../../etc"}, "bad_path", "mount_path", ""),
        ({"mount_path": "/home/work//data"}, "bad_path", "mount_path", ""),
        ({"mount_path": "/home/work/.ssh"}, "bad_path", "mount_path", ""),
        ({"env": {"WANDB_MODE": "offline", "EMPTY": ""}}, None, None, ""),
        ({"env": {"1ST": "x"}}, "bad_variable", "env", "'1ST' is not valid"),
        ({"env": {"A-B": "x"}}, "bad_variable", "env", ""),
        ({"env": {"BIG": "x" * 4097}}, "bad_variable", "env", "4097 characters; the limit is 4096"),
        ({"env": {f"V{n}": "" for n in range(51)}}, "too_many_variables", "env", "51 variables; the limit is 50"),
        (
            {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
            "forbidden_variable",
            "env",
            "Devices are assigned through the class",
        ),
        ({"env": {"CUDA_MPS_PIPE_DIRECTORY": "/x"}}, "forbidden_variable", "env", ""),
        ({"env": {"LD_PRELOAD": "/x.so"}}, "forbidden_variable", "env", ""),
        ({"env": {"JUPYTER_TOKEN": "known"}}, "forbidden_variable", "env", ""),
        ({"env": {"KUBERNETES_SERVICE_HOST": "x"}}, "forbidden_variable", "env", ""),
        ({"env": {"LD_LIBRARY_PATH": "/home/work/lib", "CUDA_VISIBLE_DEVICES": "0"}}, None, None, ""),
        ({"run_hours": 12}, None, None, ""),
        ({"run_hours": 13}, "bad_run_time", "run_hours", "Time limit of 13 h requested; A100 allows 1 to 12 h."),
        ({"run_hours": 0}, "bad_run_time", "run_hours", "Time limit of 0 h requested"),
        ({"repository": GITHUB, "reference": "release/2.1"}, None, None, ""),
        ({"reference": "main"}, "no_repository", "reference", "needs a repository"),
        ({"repository": "git@github.com:owner/name.git"}, "bad_repository", "repository", "cloned over HTTPS"),
        ({"repository": "file:///etc"}, "bad_repository", "repository", "cloned over HTTPS"),
        ({"repository": "https://github.com/"}, "bad_repository", "repository", ""),
        (
            {"repository": "https://me:secret@github.com/a/b"},
            "bad_repository",
            "repository",
            "all team members could read",
        ),
        ({"repository": "https://github.com/a/b c"}, "bad_repository", "repository", "no spaces"),
        ({"repository": "https://[::1/a/b"}, "bad_repository", "repository", "not an address"),
        ({"repository": "https://github.com/a/.."}, "bad_repository", "repository", ""),
        ({"repository": GITHUB, "reference": "--upload-pack=x"}, "bad_reference", "reference", ""),
    ],
)
def test_what_is_refused(said: dict[str, Any], code: str | None, field: str | None, words: str) -> None:
    found = options.options_refusal(Options.from_json(said), TWO_A100, has_volume=True)
    assert (found.code, found.field) == (code, field) if found else code is None
    assert words in (found.message if found else "")


def test_a_path_needs_a_volume() -> None:
    found = options.options_refusal(Options(mount_path="/home/work"), TWO_A100, has_volume=False)
    assert found is not None
    assert found.code == "no_volume"


def test_a_class_without_a_limit_takes_any_run_time_up_to_a_year() -> None:
    without = replace(TWO_A100, run_hours=None)
    assert options.options_refusal(Options(run_hours=8760), without, has_volume=False) is None
    found = options.options_refusal(Options(run_hours=8761), without, has_volume=False)
    assert found is not None
    assert "the portal allows 1 to 8760 h. Request less, or no time limit." in found.message


def test_the_sentence_knows_one_unit() -> None:
    found = options.options_refusal(Options(cpu=5), replace(TWO_A100, units=1, cpu=4), has_volume=False)
    assert found is not None
    assert "1 unit of A100 allows" in found.message


@pytest.mark.parametrize(
    "said", [{}, {"cpu": 2, "env": {"B": "2", "A": "1"}, "repository": GITHUB}, {"mount_path": "/home/work/x"}]
)
def test_they_survive_their_json(said: dict[str, Any]) -> None:
    found = Options.from_json(said)
    assert found.to_json() == said
    assert Options.from_json({**said, "of_a_newer_release": 1}) == found


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        (GITHUB, "name"),
        ("https://example.org/a/b/", "b"),
        ("https://example.org", ""),
        ("https://example.org/.git", ""),
    ],
)
def test_where_it_is_cloned_to(url: str, directory: str) -> None:
    assert options.repository_directory(url) == directory
