"""What others notice while 200 clients send their bodies slowly: the p99 of a page, over that of a quiet portal.

Through the gateway of a whole portal, as it is shipped. The page needs no session, so the cost of a page itself is
small, and waiting for a thread of web would show. Each round opens new slow bodies and ends before they are given up.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.support.pace import Asked, Pace, p99

SLOW = 200
ROUNDS = 9
A_SECOND, REQUESTS = 20, 120
CONNECTIONS = 4
RATIO = 2
BODY = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000"


@benchmark("bodies", f"p99 of a page while {SLOW} clients send a body slowly, over a quiet portal")
def bodies(context: Context) -> Iterator[Figure]:
    address = urlsplit(context.demo["portal_url"])
    port = address.port or 80
    asked = Asked("/login", {"Host": address.netloc})

    def measured() -> float:
        return p99(Pace(port, CONNECTIONS).run(lambda _index: asked, A_SECOND, REQUESTS))

    rounds = []
    for _ in range(ROUNDS):
        quiet = measured()
        with ExitStack() as opened:
            for _ in range(SLOW):
                client = opened.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                # With the cookie of a form: without one, the form is refused before its body is read.
                head = f"POST /login HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: csrf={'c' * 32}\r\n{BODY}\r\n\r\n"
                client.sendall(head.encode() + b"username=a")
            rounds.append((measured(), quiet))
    yield Figure("bodies_p99", "ms", "the same without slow bodies", rounds, Bar("ratio", RATIO))
