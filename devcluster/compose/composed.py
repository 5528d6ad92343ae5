"""The portal in containers of docker-compose.yml, started by the steps in its first lines.

They run in a copy of the tree, so that ./secrets is theirs. `up` is one command for Docker; here it is one for each
service, in the order of `depends_on`, because podman-compose leaves out health checks where podman is older than 4.6,
and podman runs none without systemd. The containers are in the network of the real node: there the gateway reaches
notebook pods, and the others the API server, at the address that the node uses.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from devcluster.client.kubeconfig import read_kubeconfig, write_kubeconfig
from devcluster.compose import engine, stand_ins
from devcluster.compose.engine import COMPOSE, Engine
from devcluster.compose.order import COMPLETED, HEALTHY, awaited, start_order, stays_up
from devcluster.controlplane import programs
from devcluster.node import images
from devcluster.node.node import API_PORT, RealNode, forward
from devcluster.processes import private_files
from devcluster.processes.console import UserError, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command
from devcluster.services.portal import Portal
from devcluster.services.stack import Stack, until

HEALTHY_WITHIN_S, COMPLETED_WITHIN_S, BUILT_WITHIN_S = 180.0, 300.0, 1200.0
# Of the tree, what is not copied: what .gitignore names.
_NOT_COPIED = (".env", ".git", ".run", ".venv", ".static", "secrets", "test-results")


@dataclass(frozen=True)
class ComposedPortal:
    stack: Stack
    portal: Portal
    engine: Engine

    @classmethod
    def of(cls, stack: Stack, portal: Portal) -> ComposedPortal:
        """`portal` says at which address it will be."""
        assert stack.real_node is not None, "the containers are in the network of the real node"
        parts = urlsplit(portal.url)
        variables = {
            "PORTAL_HOST": str(parts.hostname),
            "GATEWAY_PORT": str(parts.port),
            "NOTEBOOKS_DOMAIN": portal.notebooks_domain.partition(":")[0],
        }
        own = Engine(stack.supervisor, stack.real_node.namespaces, stack.state / "compose", variables)
        return cls(stack, portal, own)

    @property
    def node(self) -> RealNode:
        assert self.stack.real_node is not None
        return self.stack.real_node

    @property
    def tree(self) -> Path:
        return self.engine.folder / "tree"

    @property
    def file(self) -> Path:
        return self.tree / "docker-compose.yml"

    @property
    def _built(self) -> Path:
        """A file with the id of the portal's image."""
        return self.engine.folder / "built"

    @property
    def services(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.file.read_text())["services"]
        return found

    def start(self) -> Portal:
        """Returns the portal when all services are healthy and the gateway's port is open on this machine."""
        engine.check()
        shutil.copytree(ROOT, self.tree, ignore=not_copied, symlinks=True)
        self.engine.start()
        kubectl = programs.find_or_build(self.stack.supervisor, programs.KUBECTL)["kubectl"]
        self._build()
        with step("Rights and fences of deploy/base, secrets of deploy/make_secrets.py"):
            self._prepare(kubectl)
        self._up()
        with step("The first account, made in the container of web"):
            until("The first account", self._has_first_account, within_s=60)
        self._open()
        return self._described()

    def write_logs(self, *, lines: int = 15) -> str:
        """Writes the log of each container, and returns the last lines of all."""
        last: list[str] = []
        for service in self.services if self.engine.is_running else ():
            if container := self._container(service):
                done = self.engine.asked("logs", container)
                text = done.stdout + done.stderr
                (self.stack.log_dir / f"container-{service}.log").write_text(text)
                state = self.engine.inspected(container, "{{.State.Status}}, exit code {{.State.ExitCode}}")
                last.append(f"  {service} ({state}):")
                last += [f"    {line}" for line in text.splitlines()[-lines:]]
        return "\n".join(last)

    def down(self) -> None:
        """Removes the containers in order. What is left ends with the node's namespaces and the state directory."""
        if self.engine.is_running:
            with suppress(UserError):
                self.engine.run("compose-down", self._compose("down", "--volumes", "--timeout", "5"), within_s=120)

    def _build(self) -> None:
        images.ensure_bases(self.stack.supervisor, self.engine.folder)
        for name, stand_in in stand_ins.stand_ins(self.stack.programs["caddy"]).items():
            [image] = {one["image"] for one in self.services.values() if one["image"].startswith(f"{name}:")}
            with step(f"Stand-in for the image {image}"):
                folder = self.engine.folder / "images" / name.replace("/", "-")
                stand_in.write(folder, image)
                build = ["podman", "build", "--network=none", "--tag", f"docker.io/{full_name(image)}", folder]
                self.engine.run(f"build-{folder.name}", build, within_s=BUILT_WITHIN_S)
        with step("Image of the portal, from the Dockerfile"):
            options = " ".join(["--network=host", *images.machine_mounts()])
            build = self._compose("build", "--build-arg", f"BASE={images.PORTAL_BASE}", options=options)
            log = self.engine.run("compose-build", build, within_s=BUILT_WITHIN_S, has_machine_network=True)
            self._built.write_text(log.read_text().split()[-1])

    def _prepare(self, kubectl: Path) -> None:
        """As a cluster administrator, with the address of the API server that containers reach."""
        kubeconfig = self.engine.folder / "admin.kubeconfig"
        known = read_kubeconfig(Path(self.stack.services["kubeconfigs"]["admin"]))
        cluster: dict[str, object] = {
            "server": f"https://{self.node.namespaces.machine_address}:{API_PORT}",
            "certificate-authority-data": self.node.plane.pki.ca_bundle,
            "tls-server-name": "localhost",
        }
        write_kubeconfig(kubeconfig, cluster, known["user"])
        env = {"PATH": f"{kubectl.parent}:/usr/bin:/bin", "HOME": str(self.engine.folder)}
        apply = [kubectl, f"--kubeconfig={kubeconfig}", "apply", "-k", self.tree / "deploy" / "base"]
        make = [sys.executable, self.tree / "deploy" / "make_secrets.py", "--kubeconfig", kubeconfig]
        for name, argv in (("kubectl-apply", apply), ("make-secrets", make)):
            ran = self.stack.supervisor.run(Command(name, argv, env=env), within_s=120)
            if ran.process.returncode:
                raise UserError(f"{name} failed. Its last lines:\n{ran.last_lines(40)}", f"Full log: {ran.log}.")

    def _up(self) -> None:
        services = self.services
        for name in start_order(services):
            for other, condition in awaited(services[name]).items():
                self._await(other, condition)
            with step(f"Container of {name}"):
                self.engine.run(f"compose-up-{name}", self._compose("up", "--detach", "--no-build", "--no-deps", name))
        with step("All containers are healthy"):
            for name, body in services.items():
                if stays_up(body):
                    self._await(name, HEALTHY)
        self._refuse_other_image(services)

    def _refuse_other_image(self, services: dict[str, Any]) -> None:
        """A short name could also mean an image of this user's podman, which is read as a base."""
        [shared] = {body["image"] for body in services.values() if "build" in body}
        for name in [name for name, body in services.items() if body["image"] == shared]:
            image = self.engine.inspected(self._container(name), "{{.Image}}")
            if image != self._built.read_text():
                raise UserError(f"The service {name} runs another image than was built.", "See the log of the build.")

    def _await(self, service: str, condition: str) -> None:
        container = self._container(service)
        if not container:
            raise UserError(f"The service {service} has no container.", "See the logs of podman-compose.")
        if condition == HEALTHY:
            until(f"The service {service}", lambda: self.engine.is_healthy(container), within_s=HEALTHY_WITHIN_S)
            return
        assert condition == COMPLETED, f"a condition of depends_on that is not known: {condition}"
        code = self.engine.asked("wait", container, within_s=COMPLETED_WITHIN_S).stdout.strip()
        if code != "0":
            what = f"ended with exit code {code}" if code else f"did not end within {COMPLETED_WITHIN_S:.0f} s"
            raise UserError(f"The service {service} {what}.", "Its log is above.")

    def _has_first_account(self) -> bool:
        """On a busy machine web may wait for a connection to the database for longer than its 5 s: then it did nothing,
        and is asked again.
        """
        make = ["python", "manage.py", "createsuperuser", "--noinput"]
        make += ["--email", "glass@example.org", "--name", "Glass"]
        password = f"DJANGO_SUPERUSER_PASSWORD={secrets.token_urlsafe(24)}"
        try:
            self.engine.run("createsuperuser", self._compose("exec", "-T", "--env", password, "web", *make))
        except UserError as error:
            if "couldn't get a connection" in error.sentence:
                return False
            raise
        return True

    def _open(self) -> None:
        """The port is published on loopback of the node's network, which is another one than this machine's."""
        port, node = self.stack.ports["gateway"], self.node.namespaces.node_address
        inner = forward("gateway-inside", (node, port), ("127.0.0.1", port))
        network = ["nsenter", f"--net=/run/netns/{self.node.namespaces.namespace}"]
        self.stack.supervisor.start(replace(inner, argv=[*network, *inner.argv]))
        self.stack.supervisor.start(forward("gateway", ("127.0.0.1", port), (node, port)))
        self.stack.supervisor.until_ready("forward-gateway-inside", "forward-gateway")

    def _described(self) -> Portal:
        """The portal with the secrets that its containers have, for the demo data. Only the node reaches the database:
        the network `data` has no way out.
        """
        made = self.tree / "secrets"
        key = {"secret_key": (made / "secret_key").read_text()}
        private_files.write_private(self.portal.state / "secrets.json", json.dumps(key))
        services = {
            **self.portal.services,
            "database_url": self._from_node((made / "database_url").read_text(), "postgres"),
            "redis_url": self._from_node((made / "redis_url").read_text(), "redis"),
            "kubeconfigs": {
                **self.portal.services["kubeconfigs"],
                "worker": str(made / "kubeconfig_worker"),
            },
            "has_logins": False,
        }
        network = ("nsenter", f"--net=/run/netns/{self.node.namespaces.namespace}")
        return replace(self.portal, services=services, seeded_from=network)

    def _from_node(self, url: str, service: str) -> str:
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return url.replace(f"@{service}:", f"@{self.engine.inspected(self._container(service), template)}:")

    def _container(self, service: str) -> str:
        label = f"label=com.docker.compose.service={service}"
        return self.engine.asked("ps", "--all", "--quiet", "--filter", label).stdout.strip()

    def _compose(self, *arguments: object, options: str = "") -> list[object]:
        building = [f"--podman-build-args={options}"] if options else []
        return [COMPOSE, "--file", self.file, "--in-pod", "false", *building, *arguments]


def not_copied(folder: str, names: list[str]) -> set[str]:
    """For shutil.copytree."""
    ignored = {name for name in names if name == "__pycache__" or name.endswith("_cache")}
    return ignored | {name for name in names if name.startswith(_NOT_COPIED) and Path(folder) == ROOT}


def full_name(image: str) -> str:
    """Docker's own images are in the folder `library` of its registry."""
    return image if re.match(r"[^:]+/", image) else f"library/{image}"
