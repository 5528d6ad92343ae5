"""Messages of the cluster about a Secret are stored without the Secret's values."""

from __future__ import annotations

import json

import pytest

from cluster.client.errors import ClusterRefused, error_from_status
from cluster.client.secret_scrubbing import scrub_secret_values

SECRET = {"kind": "Secret", "data": {"KEY": "Z29sZGVuLWtleQ==", "SHORT": "YWI=", "NONE": ""}}


@pytest.mark.parametrize(
    ("text", "sent", "told"),
    [
        ("golden-key is weak", SECRET, "*** is weak"),
        ("data.KEY: Z29sZGVuLWtleQ== is weak", SECRET, "data.KEY: *** is weak"),
        ("about YWI= nothing", SECRET, "about *** nothing"),
        ("about nothing", SECRET, "about nothing"),
        ("golden-key is weak", {**SECRET, "kind": "ConfigMap"}, "golden-key is weak"),
        ("golden-key is weak", [{"op": "add"}], "golden-key is weak"),
        ("golden-key is weak", None, "golden-key is weak"),
    ],
)
def test_its_values_are_left_out(text: str, sent: object, told: str) -> None:
    assert scrub_secret_values(text, sent) == told


def test_a_refusal_is_cut_after_that() -> None:
    """If the text were cut first, a value at the limit would be only partly there, and would not be found."""
    text = f"{'x' * 295} golden-key"
    status = {"kind": "Status", "reason": "Invalid", "message": text, "details": {"causes": [{"message": text}]}}
    error = error_from_status(422, json.dumps(status).encode(), "secrets", SECRET)
    assert isinstance(error, ClusterRefused)
    assert error.text.endswith("x ***")
    assert "gold" not in str(error) + "".join(error.causes)
