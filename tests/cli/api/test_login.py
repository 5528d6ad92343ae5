"""Where portal and token come from, who can read the token, and that it is never printed."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from accounts.models import ApiToken, User
from gpu_cli import formatting
from gpu_cli.api import config
from gpu_cli.session import Runtime
from tenants.models import Tenant
from tests.cli.command import PORTAL, Gpu, token_of

pytestmark = pytest.mark.django_db
HTTP = "http://gpu.example.org"


@pytest.fixture
def nobody(gpu_of: Callable[..., Gpu]) -> Gpu:
    found = gpu_of(None)
    del found.environment["GPU_PORTAL"]
    return found


def test_login_keeps_address_and_token_for_their_owner_alone(nobody: Gpu, bob: User, team_a: Tenant) -> None:
    token = token_of(bob, "read")
    assert "gpu login" in nobody("status").err

    done = nobody("login", PORTAL, "--token-stdin", stdin=f"{token}\n")

    assert (done.code, done.out) == (0, "")
    assert "Signed in as bob@example.org. Teams: team-a." in done.err
    assert token not in done.err
    assert nobody.config.stat().st_mode & 0o777 == 0o600
    assert nobody.config.parent.stat().st_mode & 0o777 == 0o700
    assert nobody("status").code == 0


def test_login_asks_for_what_is_not_said_and_does_not_echo_the_token(
    nobody: Gpu, bob: User, team_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(bob, "read")
    asked: list[tuple[str, bool]] = []

    def prompt(text: str, *, hide_input: bool = False, err: bool = False) -> str:
        asked.append((text, hide_input))
        return token if hide_input else f"{PORTAL}/"

    monkeypatch.setattr("typer.prompt", prompt)
    assert nobody("login").code == 0
    assert [is_hidden for _text, is_hidden in asked] == [False, True]
    assert nobody("status").code == 0


def test_a_token_that_does_not_work_replaces_none(nobody: Gpu, bob: User, team_a: Tenant) -> None:
    nobody("login", PORTAL, "--token-stdin", stdin=token_of(bob, "read"))
    kept = nobody.config.read_text()
    wrong = "gpt_aaaaaaaa_" + 43 * "x"
    refused = nobody("login", PORTAL, "--token-stdin", stdin=wrong)
    assert refused.code == 7
    assert wrong not in refused.err
    assert nobody.config.read_text() == kept


def test_a_kept_token_is_for_its_own_portal(nobody: Gpu, bob: User, team_a: Tenant) -> None:
    nobody("login", PORTAL, "--token-stdin", stdin=token_of(bob, "read"))
    nobody.between.asked.clear()
    for arguments, portal in ((("--portal", "https://other.example.org"), ""), ((), "https://other.example.org")):
        nobody.environment["GPU_PORTAL"] = portal
        refused = nobody(*arguments, "status")
        assert refused.code == 7
        assert "No token for https://other.example.org" in refused.err
    assert nobody.between.asked == []


def test_the_environment_comes_first_and_a_file_will_do(nobody: Gpu, bob: User, team_a: Tenant, tmp_path: Path) -> None:
    nobody("login", PORTAL, "--token-stdin", stdin=token_of(bob, "read"))
    ApiToken.objects.all().delete()
    assert nobody("status").code == 7
    file = tmp_path / "token"
    file.write_text(token_of(bob, "read") + "\n")
    nobody.environment["GPU_TOKEN_FILE"] = str(file)
    assert nobody("status").code == 0
    nobody.environment["GPU_TOKEN"] = "gpt_wrong"
    assert nobody("status").code == 7
    del nobody.environment["GPU_TOKEN"]
    nobody.environment["GPU_TOKEN_FILE"] = str(tmp_path / "missing")
    assert "Cannot read" in nobody("status").err


def test_a_file_that_others_can_read_is_not_used(nobody: Gpu, bob: User, team_a: Tenant) -> None:
    nobody("login", PORTAL, "--token-stdin", stdin=token_of(bob, "read"))
    nobody.config.chmod(0o640)
    refused = nobody("status")
    assert refused.code == 7
    assert "chmod 600" in refused.err


@pytest.mark.parametrize("text", ["", "ftp://gpu.example.org", "gpu.example.org", "https://u:p@gpu.example.org", HTTP])
def test_addresses_that_no_token_is_sent_to(nobody: Gpu, text: str) -> None:
    done = nobody("login", "--token-stdin", *([text] if text else []), stdin="gpt_x")
    assert done.code == 2
    assert nobody.between.asked == []


@pytest.mark.parametrize(
    "text", ["http://localhost:8000", "http://portal.localhost", "http://127.0.0.1:1", "https://a.b/c/"]
)
def test_addresses_that_are_well(text: str) -> None:
    assert config.validate_address(text) == text.rstrip("/")


@pytest.mark.parametrize("text", ["", "two words", "line\nline", "gpt_\u00e9", "\x1b[0m"])
def test_what_is_no_token_is_refused_without_being_shown(nobody: Gpu, text: str) -> None:
    nobody.environment |= {"GPU_PORTAL": PORTAL, "GPU_TOKEN": text or " "}
    refused = nobody("status")
    assert refused.code == 7
    assert not text or text not in refused.err
    assert nobody.between.asked == []


def test_no_token_is_shown_even_where_everything_is(
    gpu: Gpu, team_a: Tenant, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers --verbose, a refusal, a bug with its traceback, reprs and logs."""
    token = gpu.environment["GPU_TOKEN"]
    caplog.set_level("DEBUG")
    shown = [gpu("--verbose", "status"), gpu("-v", "status", "nothing"), gpu("--verbose", "token", "list")]
    assert "GET /api/v1/workloads" in shown[0].err
    portal = config.resolve(gpu.environment)
    assert token not in repr(portal) + repr(Runtime(environment=gpu.environment))
    assert all(token not in done.out + done.err for done in shown)
    assert token not in caplog.text


def test_a_traceback_shows_no_variables(gpu: Gpu, team_a: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the process ends: Python prints the traceback, not the test runner."""

    def broken(_found: object) -> str:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(formatting, "classes", broken)
    with pytest.raises(RuntimeError) as raised:
        gpu("classes")
    text = "".join(traceback.format_exception(raised.value))
    assert "a mistake of ours" in text
    assert gpu.environment["GPU_TOKEN"] not in text


def test_a_new_token_alone_is_on_stdout_and_can_be_revoked(
    gpu_of: Callable[..., Gpu], bob: User, team_a: Tenant
) -> None:
    gpu = gpu_of(bob, "read", "launch", "admin")
    made = gpu("token", "create", "ci", "--scope", "read", "--scope", "launch", "--days", "7")
    assert made.code == 0, made.err
    (token,) = made.out.splitlines()
    prefix = token.split("_")[1]
    assert token not in made.err
    assert prefix in gpu("token", "list").out
    other = gpu_of(None)
    other.environment["GPU_TOKEN"] = token
    assert other("status").code == 0
    assert gpu("token", "revoke", prefix).code == 0
    assert other("status").code == 7


# ---- signing out --------------------------------------------------------------------------------------------------


def test_logout_deletes_the_file_and_says_that_the_token_works_on(nobody: Gpu, bob: User, team_a: Tenant) -> None:
    token = token_of(bob, "read")
    nobody("login", PORTAL, "--token-stdin", stdin=token)
    done = nobody("logout")
    assert (done.code, nobody.config.exists()) == (0, False)
    assert "gpu logout --revoke" in done.err
    assert ApiToken.objects.get().revoked_at is None
    assert nobody("logout").code == 0


@pytest.mark.parametrize("scope", ["read", "launch"])
def test_logout_revokes_the_token_whatever_its_scope(nobody: Gpu, bob: User, team_a: Tenant, scope: str) -> None:
    config.save(nobody.config, config.Portal(PORTAL, token_of(bob, scope)))
    done = nobody("logout", "--revoke")
    assert (done.code, nobody.config.exists()) == (0, False)
    assert ApiToken.objects.get().revoked_at is not None


def test_a_token_that_is_revoked_already_is_forgotten(nobody: Gpu, bob: User) -> None:
    config.save(nobody.config, config.Portal(PORTAL, token_of(bob, "read")))
    ApiToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert nobody("logout", "--revoke").code == 0
    assert not nobody.config.exists()
