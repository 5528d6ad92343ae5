"""Private names of allauth that the portal uses. Any release may change them: read these tests before an upgrade."""

from __future__ import annotations

import ast

from tests.support.source import named, product_modules

# ADR 50 says why each is used and what was measured.
INTERNALS = {
    "accounts/credentials/actions.py": {
        "allauth.mfa.recovery_codes.internal.auth.RecoveryCodes",
        "allauth.mfa.totp.internal.auth.format_hotp_value",
        "allauth.mfa.totp.internal.auth.hotp_value",
        "allauth.mfa.totp.internal.auth.yield_hotp_counters_from_time",
    },
    "accounts/credentials/views.py": {"allauth.mfa.base.internal.flows.post_authentication"},
    "accounts/sign_in/oidc/views.py": {"allauth.account.internal.flows.login.record_authentication"},
    "accounts/sign_in/views.py": {
        "allauth.account.internal.decorators.login_stage_required",
        "allauth.account.internal.flows.login.record_authentication",
        "allauth.mfa.base.internal.flows.post_authentication",
    },
}


def test_no_other_private_name_of_allauth_is_used() -> None:
    found: dict[str, set[str]] = {}
    for path in product_modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("allauth."):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                if private := {name for name in names if ".internal" in name}:
                    found.setdefault(named(path), set()).update(private)
    assert found == INTERNALS
