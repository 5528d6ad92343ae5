"""A node that answers with logs, in place of a cluster."""

from __future__ import annotations

import io
from typing import Any

import urllib3


class Node:
    """`answers`: bytes of the log, or an error, one for each call; the last one repeats."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def open_log(self, **_place: Any) -> urllib3.BaseHTTPResponse:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return urllib3.HTTPResponse(body=io.BytesIO(answer), preload_content=False)
