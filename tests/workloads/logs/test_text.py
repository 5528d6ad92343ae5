"""What is kept of a log: the end of it, without secrets."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from workloads.logs.queries import KeptLog
from workloads.logs.text import TEXT_BYTES, kept_text

SECRET = "q7G-not-in-any-log-9k"
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + 20 * ("MIIEowIBAAKCAQEA7bq" * 3 + "\n") + "-----END RSA PRIVATE KEY-----\n"


def kept(text: str, *secrets: str, is_truncated: bool = False) -> str:
    return kept_text(text.encode(), is_truncated=is_truncated, secrets=secrets)[0]


def test_plain_text_is_not_changed() -> None:
    text = "epoch 1 of 3: loss=0.25, 1200 tokens/s\n\x1b[32mdone\x1b[0m ä\n"
    assert kept_text(text.encode(), is_truncated=False, secrets=()) == (text, False)
    assert kept_text(text.encode(), is_truncated=True, secrets=()) == (text, True)


def test_a_long_text_is_not_cut_as_a_log_line_of_the_portal_is() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    assert kept(text) == text


@pytest.mark.parametrize(
    ("written", "hidden"),
    [
        (f"the value is {SECRET}!", SECRET),
        ("curl -H 'Authorization: Bearer abcdefgh12345'", "abcdefgh12345"),
        ("AWS_SECRET_ACCESS_KEY=abcdefgh12345", "abcdefgh12345"),
        ("http://localhost:8888/?token=abcdefgh12345", "abcdefgh12345"),
        (KEY, "MIIEowIBAAKCAQEA7bq"),
    ],
)
def test_secrets_are_hidden(written: str, hidden: str) -> None:
    found = kept(f"before\n{written}\nafter\n", SECRET)
    assert hidden not in found
    assert found.startswith("before\n")
    assert found.endswith("after\n")


def test_a_key_of_which_only_the_end_is_there_is_hidden() -> None:
    found = kept(KEY[200:] + "epoch 1\n", is_truncated=True)
    assert "MIIEowIBAAKCAQEA7bq" not in found
    assert found.endswith("epoch 1\n")


def test_a_value_of_several_lines_is_hidden_although_its_first_line_is_missing() -> None:
    value = '{"type": "account",\n "id": "1234-5678-abcd",\n "mail": "robot@example.org"}'
    found = kept(' "mail": "robot@example.org"}\nepoch 1\n', value, is_truncated=True)
    assert "robot@" not in found
    assert found.endswith("epoch 1\n")


def test_it_is_never_larger_than_the_limit_and_postgresql_can_store_it() -> None:
    binary = b"\x00\xff\xfe" * (TEXT_BYTES // 3)
    text, is_truncated = kept_text(binary, is_truncated=False, secrets=())
    assert is_truncated
    assert "\0" not in text
    assert len(text.encode()) <= TEXT_BYTES
    lines = "".join(f"{number} x=1234567\n" for number in range(40_000))
    found, is_cut = kept_text(lines.encode(), is_truncated=False, secrets=())
    assert is_cut
    assert found.splitlines()[0].endswith(" x=1234567")
    assert found.endswith("39999 x=1234567\n")


@pytest.mark.parametrize("hostile", ["tokentoken", 'token="', "a://", "eyJ.", "-----BEGIN PRIVATE KEY-----\n", "A=\n"])
def test_hostile_text_costs_no_more_than_its_length(hostile: str) -> None:
    def seconds(size: int) -> float:
        since = time.process_time()
        kept(hostile * (size // len(hostile)), SECRET, is_truncated=True)
        return time.process_time() - since

    seconds(1000)
    assert seconds(TEXT_BYTES) < 40 * max(seconds(TEXT_BYTES // 8), 0.01)


def test_the_note_is_clear_in_every_time_zone() -> None:
    """It is also a header of the API and a line of `gpu logs`."""
    read_at, expires_at = datetime(2027, 1, 1, 10, tzinfo=UTC), datetime(2027, 1, 15, 10, tzinfo=UTC)
    note = KeptLog(7, 0, "text", True, read_at, expires_at).note
    kept = "This is the last part of the log of run 7, kept 01 Jan 2027, 10:00 UTC."
    assert note == f"{kept} It is deleted on 15 Jan 2027, 10:00 UTC."
