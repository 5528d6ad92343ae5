"""`run.py demo --check`: uses the main path of the portal, as a browser and as an API client.

The effects in the cluster are verified by an independent client with an administrator's kubeconfig.
"""

from __future__ import annotations

import argparse
import ssl
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api
from devcluster.demo import environment
from devcluster.demo.http_client import BrowserSession, Page
from devcluster.demo.notebook_client import compute
from devcluster.demo.observer import KUEUE, ClusterObserver
from devcluster.demo.scenarios import Scenario
from devcluster.node import images
from devcluster.node.configuration import LABELS
from devcluster.processes.console import UserError, elapsed, note, say
from devcluster.services.portal import Portal
from devcluster.services.stack import Options, Stack

TEAM = "team-a"
# The class that is used: whole GPUs of a product with this resource, not shared. UNITS: how many are requested.
RESOURCE, UNITS = "nvidia.com/gpu", 2
PRODUCT, IMAGE = "NVIDIA-A100-SXM4-80GB", "JupyterLab"
# Phase and reason of what the everyday demo launches (devcluster/demo/sample/activity.py).
EXPECTED = {
    "team-a": {"lecture-3": ("ready", "ready")},
    "team-c": {"replica-1": ("running", "running")},
    "vision": {
        "segmentation": ("running", "running"),
        "video-decode": ("running", "running"),
        "ablation-1": ("queued", "waiting_for_quota"),
        "ablation-2": ("queued", "waiting_for_quota"),
    },
    "speech": {
        "asr-english": ("running", "running"),
        "asr-french": ("running", "running"),
        "tts": ("running", "running"),
        "diarization": ("blocked", "image_not_found"),
        "xe-benchmark": ("queued", "no_node_fits"),
        "gaudi-port": ("queued", "class_held"),
    },
}
# Intel's device plugin exposes access to GPU metrics as a resource.
NOT_GPUS = {"gpu.intel.com/monitoring"}


def check(arguments: argparse.Namespace, scenario: Scenario) -> int:
    with tempfile.TemporaryDirectory(prefix="gpu-portal-", ignore_cleanup_errors=True) as state:
        options = Options(
            state=Path(state),
            hardware=arguments.hardware,
            kubeconfig=arguments.kubeconfig,
            real_node=arguments.real_node,
            deployed=arguments.deployed,
            composed=arguments.compose,
        )
        with environment.started(options, port=arguments.port, scenario=scenario) as (stack, portal, accounts):
            cast = {account["name"]: account for account in accounts}
            path = ThinPath(portal.url, portal.notebooks_domain, cast, stack.admin, **_on_real_node(stack, portal))
            try:
                path.walk(scenario)
            except AssertionError as error:
                logs = environment.keep_logs(stack)
                raise UserError(f"Check failed: {error}", f"The logs are kept in {logs}.") from error
    say("\nAll steps verified in the cluster.")
    return 0


class ThinPath:
    """`product` and `image`: the label of the nodes and the name in the catalog that the notebook uses. `trust`: the
    certificate authority of an https `url`.
    """

    def __init__(
        self,
        url: str,
        notebooks_domain: str,
        accounts: dict[str, dict[str, Any]],
        admin: Api,
        *,
        product: str = PRODUCT,
        image: str = IMAGE,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.admin = admin
        self.seen = ClusterObserver(admin, TEAM)
        self.url, self.trust = url, trust
        self.notebooks_domain = notebooks_domain
        self.accounts = accounts
        self.product, self.image = product, image
        self.alice, self.dana, self.olga = (self._visitor() for _ in range(3))
        self.alice_api = self._visitor(token=accounts["Alice"]["token"])
        self.dana_api = self._visitor(token=accounts["Dana"]["token"])
        self.slug = ""  # of the GPU class
        self.steps = 0

    def walk(self, scenario: Scenario) -> None:
        if not scenario.runs_anywhere:
            self._step("four teams are at work; each queued workload has its reason", self.look_at_activity)
        self._step("Alice, Dana and Olga sign in; anonymous access is refused", self.sign_in)
        self._step("the catalog has a class for every GPU resource of the nodes", self.look_at_catalog)
        self._step(f"Alice requests {UNITS} GPUs", self.ask)
        self._step("Dana approves", self.decide)
        self._step(
            "namespace, quota, limits, network policies, role bindings and queue are in the cluster", self.provisioned
        )
        self._step("Alice launches a notebook; it is queued, admitted and started", self.launch)
        self._step("her home page shows it live, and Kueue counts its GPU", self.home)
        self._step("she opens it through the gateway and the kernel answers 6*7", self.open)
        self._step("a user of another team has no access to it", self.stranger)
        self._step("she stops it; the GPU is free again", self.stop)
        self._step("the same with an API token: declare, start, wait, stop", self.by_token)
        if not scenario.runs_anywhere:
            self._step("every object in the cluster is as the portal sent it, and was all the time", self.no_drift)

    def _visitor(self, *, token: str = "") -> BrowserSession:
        return BrowserSession(self.url, token=token, trust=self.trust)

    def _step(self, what: str, do: Callable[[], None]) -> None:
        began = time.monotonic()
        do()
        self.steps += 1
        note(f"{self.steps:2}. {what} ({elapsed(time.monotonic() - began)})")

    # the steps

    def look_at_activity(self) -> None:
        """What each team's own members see, and what waits for the approver."""
        for team, owner in (("team-a", "Bob"), ("team-c", "Charlie"), ("vision", "Erin"), ("speech", "Frank")):
            api = self._visitor(token=self.accounts[owner]["token"])
            for name, expected in EXPECTED[team].items():
                self.seen.until(f"{name} as {' '.join(expected)}", partial(_is_told, api, team, name, expected))
        waiting = self._json(self.dana_api.api("GET", "/api/v1/requests?state=pending"))["items"]
        assert {one["team"] for one in waiting} == {"team-c", "vision"}, f"pending: {waiting}"

    def sign_in(self) -> None:
        anonymous = self._visitor().get(f"/teams/{TEAM}")
        assert anonymous.form(having="password"), "a page was shown without sign-in"
        for visitor, name in ((self.alice, "Alice"), (self.dana, "Dana"), (self.olga, "Olga")):
            account = self.accounts[name]
            page = visitor.get("/login")
            form = page.form(having="password")
            user_field = "username" if "username" in form.fields else "email"
            landed = visitor.submit(page, form, **{user_field: account["email"], "password": account["password"]})
            _ok(landed)
            assert "password" not in {name for one in landed.forms() for name in one.fields}, f"{name} is not signed in"

    def look_at_catalog(self) -> None:
        seen = {
            resource
            for node in self.admin.list("v1/nodes")
            for resource, amount in node["status"]["allocatable"].items()
            if "/" in resource and resource not in NOT_GPUS and amount != "0"
        }
        classes = self._json(self.alice_api.api("GET", "/api/v1/classes?limit=100"))["items"]
        missing = seen - {one["resource"] for one in classes}
        assert seen, "no node has a GPU"
        assert not missing, f"no class for {', '.join(sorted(missing))}"
        found = [one for one in classes if one["resource"] == RESOURCE and one["product"] == self.product]
        whole = [one for one in found if one["partition"] == "none" and one["sharing"] == "none"]
        assert whole, f"no class of whole {self.product} GPUs"
        self.slug = whole[0]["slug"]
        words = _ok(self.alice.get("/catalog")).words()
        assert whole[0]["name"] in words, f"the catalog page does not name {whole[0]['name']}"

    def ask(self) -> None:
        page = _ok(self.alice.get(f"/teams/{TEAM}/requests/new?class={self.slug}"))
        form = page.form(having=f"units-{self.slug}")
        filed = self.alice.submit(
            page, form, **{f"units-{self.slug}": str(UNITS), "justification": "Two GPUs for training."}
        )
        _ok(filed)
        self.request_path = filed.url
        assert filed.url.rsplit("/", 1)[1].isdigit(), f"not filed: {filed.words()[:300]}"
        assert self.seen.nominal(RESOURCE) == 0, "quota before a decision"

    def decide(self) -> None:
        page = _ok(self.dana.get(self.request_path))
        form = page.form(action="/decide")
        decided = self.dana.submit(page, form, decision="approve", reason="Enough GPUs are free.")
        _ok(decided)
        state = self._json(self.dana_api.api("GET", f"/api/v1/requests/{self.request_path.rsplit('/', 1)[1]}"))["state"]
        assert state == "approved", f"the request is {state}"

    def provisioned(self) -> None:
        self.seen.until(f"{UNITS} units in the ClusterQueue", lambda: self.seen.nominal(RESOURCE) == UNITS)
        for resource in (
            "v1/resourcequotas",
            "v1/limitranges",
            "networking.k8s.io/v1/networkpolicies",
            "rbac.authorization.k8s.io/v1/rolebindings",
            f"{KUEUE}/localqueues",
        ):
            self.seen.until(resource, partial(self.admin.list, resource, namespace=TEAM))
        queue = self.seen.until(
            "an active ClusterQueue", lambda: self.seen.condition(f"{KUEUE}/clusterqueues", TEAM, "Active")
        )
        assert queue["reason"] == "Ready", f"the ClusterQueue reports {queue['message']}"
        labels = self.admin.get("v1/namespaces", TEAM)["metadata"]["labels"]
        assert labels.get("pod-security.kubernetes.io/enforce") == "restricted", "the namespace does not restrict pods"
        hard = self.admin.get("v1/resourcequotas", "gpu-portal", namespace=TEAM)["spec"]["hard"]
        assert int(hard.get(f"requests.{RESOURCE}", 0)) >= UNITS, f"the ResourceQuota allows {hard}"

    def launch(self) -> None:
        self.live = self.alice.listen(f"/live/{TEAM}")  # as her open home page does
        page = _ok(self.alice.get(f"/teams/{TEAM}/launch"))
        form = page.form(having="gpu_class")
        typed = {"name": "first", "kind": "notebook", "gpu_class": self.slug, "units": "1", "image": self.image}
        launched = _ok(self.alice.submit(page, form, **typed))
        assert launched.url.endswith(f"/teams/{TEAM}/workloads/first"), f"not launched: {launched.words()[:300]}"
        job = self.seen.until("the Job", lambda: self.seen.job("first"))
        workload = self.seen.until("admission by Kueue", lambda: self.seen.admitted(job))
        assert workload["spec"]["queueName"] == "gpu-portal", "another queue"
        pod = self.seen.until("a ready pod", lambda: self.seen.ready_pod("first"))
        node = self.admin.get("v1/nodes", pod["spec"]["nodeName"])
        assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == self.product, "on another kind of node"
        self.seen.until("the notebook as ready on its page", lambda: self._phase("first") == "ready")

    def home(self) -> None:
        words = _ok(self.alice.get("/")).words()
        assert "first" in words, f"the home page does not name the notebook: {words[:300]}"
        self.seen.until("the notebook on her open page", lambda: f"/teams/{TEAM}/workloads/first" in self.live.text)
        self.live.close()
        assert self.seen.used(RESOURCE) == 1, f"Kueue counts {self.seen.used(RESOURCE)} units"

    def open(self) -> None:
        page = _ok(self.alice.get(f"/teams/{TEAM}/workloads/first"))
        opened = _ok(self.alice.submit(page, page.form(action="/open")))
        host = opened.url.split("/")[2]
        assert host.endswith(self.notebooks_domain), f"opened at {host}"
        assert "jupyter" in opened.text.lower(), f"this is not JupyterLab: {opened.words()[:200]}"
        self.token = self.seen.notebook_token("first")
        told = opened.url + str(opened.headers) + opened.text
        assert self.token not in told, "the notebook's token is in the address, a header or the page"
        answer = compute(self.alice, opened, "6*7")
        assert answer == "42", f"the kernel answered {answer!r}"
        self.notebook_url = opened.url
        log = self.admin.raw("GET", f"/api/v1/namespaces/{TEAM}/pods/{self.seen.pod_name('first')}/log")
        assert log[0] == 200, f"its log cannot be read through the API server: {log}"
        assert b"jupyter" in log[1].lower(), f"this is another log: {log[1][:200]!r}"

    def stranger(self) -> None:
        """A user of another team has no access. The gateway requires its cookie even from a client that has the
        notebook's token.
        """
        charlie, with_token = self._visitor(), self._visitor(token=self.token)
        for visitor, url in ((charlie, self.notebook_url), (with_token, f"{self.notebook_url}?token={self.token}")):
            refused = visitor.request("GET", url)
            assert refused.status in (302, 303, 401, 403, 404), f"{refused.status} without the gateway's cookie"
        by_token = self._visitor(token=self.accounts["Charlie"]["token"])
        found = by_token.api("GET", f"/api/v1/workloads/first?team={TEAM}")
        assert found.status == 404, f"Charlie gets {found.status}"

    def stop(self) -> None:
        page = _ok(self.alice.get(f"/teams/{TEAM}/workloads/first"))
        _ok(self.alice.submit(page, page.form(action="/stop")))
        self._gone("first")

    def by_token(self) -> None:
        wanted = {"kind": "notebook", "gpu_class": self.slug, "units": 1, "image": self.image}
        path = f"/api/v1/workloads/second?team={TEAM}"
        declared = self.alice_api.api("PUT", path, wanted)
        again = self.alice_api.api("PUT", path, wanted)
        assert (declared.status, again.status) == (201, 200), f"declared: {declared.status}, again: {again.status}"
        started = self.alice_api.api("POST", f"/api/v1/workloads/second/runs?team={TEAM}")
        assert started.status == 201, f"{started.status}: {started.text[:300]}"
        waited = self._json(self.alice_api.api("GET", f"{path}&wait=60&until=ready"))
        assert waited["status"]["phase"] == "ready", f"after waiting it is {waited['status']}"
        assert self.seen.ready_pod("second"), "no ready pod in the cluster"
        stopped = self.alice_api.api("POST", f"/api/v1/workloads/second/stop?team={TEAM}")
        assert stopped.status == 202, f"{stopped.status}: {stopped.text[:300]}"
        self._gone("second")

    def no_drift(self) -> None:
        """Nobody else changes objects of this cluster, so a repair would be of a change of the portal's own."""
        words = _ok(self.olga.get("/health")).words()
        for sentence in ("All objects are in sync.", "No drift was found."):
            assert sentence in words, (
                f"Health does not say {sentence!r}: {words[words.find('Objects out of sync') :][:600]}"
            )

    def _gone(self, workload: str) -> None:
        self.seen.until("the end of the Job", lambda: self.seen.job(workload) is None)
        self.seen.until("the end of the pod", lambda: not self.seen.of("v1/pods", workload))
        self.seen.until("the release of the units", lambda: self.seen.used(RESOURCE) == 0)

    def _phase(self, workload: str) -> str:
        found = self._json(self.alice_api.api("GET", f"/api/v1/workloads/{workload}?team={TEAM}"))
        return str(found["status"]["phase"])

    def _json(self, page: Page) -> Any:
        return _ok(page).json()


def _on_real_node(stack: Stack, portal: Portal) -> dict[str, Any]:
    """Where there is a real node, the notebook is a container of it."""
    if stack.real_node is None:
        return {}
    own = {"product": LABELS["nvidia.com/gpu.product"], "image": images.NOTEBOOK_NAME}
    if portal.scheme != "https":
        return own
    return {**own, "trust": ssl.create_default_context(cafile=str(stack.real_node.plane.pki.cert("ca")))}


def _is_told(api: BrowserSession, team: str, name: str, expected: tuple[str, str]) -> bool:
    status = _ok(api.api("GET", f"/api/v1/workloads/{name}?team={team}")).json()["status"]
    return (status["phase"], status["reason"]) == expected


def _ok(page: Page) -> Page:
    assert page.status == 200, f"{page.url} answered {page.status}: {page.words()[:300]}"
    return page
