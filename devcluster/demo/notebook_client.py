"""Runs code in the kernel of a notebook through the gateway, as JupyterLab in a browser does."""

from __future__ import annotations

import json
import uuid
from urllib.parse import urljoin, urlsplit

from websockets.sync.client import connect

from devcluster.demo import http_client
from devcluster.demo.http_client import BrowserSession, Page

ANSWER_WITHIN_S = 30.0


def compute(visitor: BrowserSession, opened: Page, code: str) -> str:
    """Starts a kernel, runs `code`, returns the text of its value, and ends the kernel. `opened`: the notebook's first
    page.
    """
    kernels = urljoin(opened.url, "/api/kernels")
    # No XSRF token is sent: the gateway adds the notebook's token as a header, and Jupyter accepts such requests
    # without one.
    host = urlsplit(opened.url).netloc
    started = visitor.request("POST", kernels, b"{}", "application/json")
    assert started.status == 201, f"no kernel: {started.status} {started.text[:200]}"
    kernel = started.json()["id"]
    try:
        return _execute(visitor, host, kernel, code)
    finally:
        visitor.request("DELETE", f"{kernels}/{kernel}")


def _execute(visitor: BrowserSession, host: str, kernel: str, code: str) -> str:
    connection = http_client.connect(host, trust=visitor.trust, timeout_s=ANSWER_WITHIN_S)
    headers = {"Cookie": visitor.cookie_header(host), "Origin": f"{urlsplit(visitor.base).scheme}://{host}"}
    session = uuid.uuid4().hex
    with connect(
        f"ws://{host}/api/kernels/{kernel}/channels?session_id={session}",
        sock=connection,
        additional_headers=headers,
        max_size=None,
        # Jupyter answers when the kernel does, whose first start in a new container takes a while.
        open_timeout=ANSWER_WITHIN_S,
    ) as channel:
        channel.send(json.dumps(request_of(session, code)))
        while True:
            message = json.loads(channel.recv(timeout=ANSWER_WITHIN_S))
            kind, content = message["msg_type"], message["content"]
            if kind == "execute_result":
                return str(content["data"]["text/plain"])
            if kind == "error":
                return f"{content['ename']}: {content['evalue']}"


def request_of(session: str, code: str) -> dict[str, object]:
    header = {
        "msg_id": uuid.uuid4().hex,
        "session": session,
        "username": "check",
        "version": "5.3",
        "msg_type": "execute_request",
    }
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    return {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": "shell",
        "buffers": [],
    }
