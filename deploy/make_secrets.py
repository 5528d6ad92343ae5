#!/usr/bin/env python3
"""Creates the files in ./secrets that docker-compose.yml reads. Standard library only; never overwrites a file.

Only its owner can open the folder. The files have read permission for all, since compose mounts them with their own
mode into containers that run as other users. Kubeconfigs need kubectl and an administrator's kubeconfig:

    python3 deploy/make_secrets.py --kubeconfig ~/.kube/config

Their tokens expire when the cluster decides (one year is requested). To renew them, delete the three files and run
the script again.
"""

from __future__ import annotations

import argparse
import base64
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

IDENTITIES = ("worker", "watcher", "doors")
LOGINS = ("web", "doors", "worker", "watcher", "beat")
NAMESPACE = "gpu-portal"


def main() -> int:
    parser = argparse.ArgumentParser(description="Create the secrets that docker-compose.yml reads.")
    parser.add_argument(
        "--kubeconfig", type=Path, help="kubeconfig of a cluster administrator. Default: create no kubeconfigs"
    )
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parent.parent / "secrets")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    made = make_random(folder)
    if arguments.kubeconfig:
        made += make_kubeconfigs(folder, arguments.kubeconfig)
    sys.stdout.write(f"Created in {folder}: {', '.join(made) or 'nothing, all files exist'}\n")
    missing = [f"kubeconfig_{who}" for who in IDENTITIES if not (folder / f"kubeconfig_{who}").exists()]
    if missing:
        sys.stderr.write(f"Missing: {', '.join(missing)}. Run the script again with --kubeconfig.\n")
    return 1 if missing else 0


def make_random(folder: Path) -> list[str]:
    """Passwords are created before the URLs that contain them."""
    made = [
        write(folder / "secret_key", secrets.token_urlsafe(50)),
        write(folder / "notebook_token_key", secrets.token_urlsafe(50)),
        write(folder / "secrets_private_key", base64.b64encode(secrets.token_bytes(32)).decode()),
        write(folder / "second_factor_key", base64.b64encode(secrets.token_bytes(32)).decode()),
        write(folder / "database_password", secrets.token_urlsafe(32)),
        write(folder / "redis_conf", f'requirepass {secrets.token_urlsafe(32)}\nsave ""\nappendonly no\n'),
    ]
    database = (folder / "database_password").read_text()
    redis = (folder / "redis_conf").read_text().split()[1]
    private = base64.b64decode((folder / "secrets_private_key").read_text())
    made += [
        write(folder / "secrets_public_key", base64.b64encode(public_key(private)).decode()),
        write(folder / "database_url", f"postgres://portal:{database}@postgres:5432/portal"),
        *(write(folder / f"database_url_{name}", login_url(name)) for name in LOGINS),
        write(folder / "redis_url", f"redis://:{redis}@redis:6379/0"),
        write(folder / "mail_url", "consolemail://"),
    ]
    return [name for name in made if name]


def login_url(process: str) -> str:
    """The user is created by `manage.py database_roles`, with this password."""
    return f"postgres://portal_{process}_1:{secrets.token_urlsafe(32)}@postgres:5432/portal"


def public_key(private: bytes) -> bytes:
    """X25519, RFC 7748: the base point nine times the scalar, by Montgomery's ladder."""
    prime = 2**255 - 19
    scalar = (int.from_bytes(private, "little") & ((1 << 255) - 8)) | (1 << 254)
    x2, z2, x3, z3 = 1, 0, 9, 1
    for bit in reversed(range(255)):
        is_set = scalar >> bit & 1
        if is_set:
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus, minus = (x2 + z2) ** 2, (x2 - z2) ** 2
        cross_a, cross_b = (x3 - z3) * (x2 + z2), (x3 + z3) * (x2 - z2)
        x3, z3 = (cross_a + cross_b) ** 2 % prime, 9 * (cross_a - cross_b) ** 2 % prime
        difference = plus - minus
        x2, z2 = plus * minus % prime, difference * (plus + 121665 * difference) % prime
        if is_set:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, prime - 2, prime) % prime).to_bytes(32, "little")


def make_kubeconfigs(folder: Path, admin: Path) -> list[str]:
    cluster = kubectl(admin, "config", "view", "--raw", "--minify", "--flatten", "-o", "json")["clusters"][0]["cluster"]
    made = []
    for who in IDENTITIES:
        path = folder / f"kubeconfig_{who}"
        if not path.exists():
            request = {"kind": "TokenRequest", "spec": {"expirationSeconds": 365 * 24 * 3600}}
            request["apiVersion"] = "authentication.k8s.io/v1"
            account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{who}/token"
            answer = kubectl(admin, "create", "--raw", account, "-f", "-", stdin=json.dumps(request))
            made.append(write(path, kubeconfig(cluster, answer["status"]["token"])))
    return made


def kubeconfig(cluster: dict[str, Any], token: str) -> str:
    """JSON is YAML, so every client reads it."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "portal",
        "clusters": [{"name": "portal", "cluster": cluster}],
        "users": [{"name": "portal", "user": {"token": token}}],
        "contexts": [{"name": "portal", "context": {"cluster": "portal", "user": "portal"}}],
    }
    return json.dumps(config, indent=1)


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "") -> dict[str, Any]:
    command = ["kubectl", f"--kubeconfig={kubeconfig}", *arguments]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=60)
    except FileNotFoundError:
        sys.exit("kubectl is not installed. It is required to create kubeconfigs.")
    except subprocess.CalledProcessError as error:
        sys.exit(f"kubectl failed: {error.stderr.strip()}\nCheck that deploy/base is applied to that cluster.")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def write(path: Path, content: str) -> str:
    """The name of the file if it was created now, "" if it existed."""
    try:
        with path.open("x") as file:
            file.write(content)
    except FileExistsError:
        return ""
    path.chmod(0o644)
    return path.name


if __name__ == "__main__":
    sys.exit(main())
