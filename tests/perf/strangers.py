"""What others notice of strangers who send their bodies slowly, or lines that are expensive to clean for a log.

Through the gateway of a whole portal, as it is shipped. The page needs no session, so the cost of a page itself is
small, and waiting for a thread would show. Slow bodies: each round opens new ones and ends before they are given up.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.support.pace import Asked, Pace, p99

SLOW = 200
ROUNDS = 9
A_SECOND, REQUESTS = 20, 120
CONNECTIONS = 4
RATIO = 2
BODY = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000"

HOSTILE = 16
LINES_A_SECOND = 48
# As long as the gateway lets through. A name that contains a word for a secret, again and again.
WORD, LINE_BYTES = "token", 3900
ANSWERS = (200, 401)


@benchmark("bodies", f"p99 of a page while {SLOW} clients send a body slowly, over a quiet portal")
def bodies(context: Context) -> Iterator[Figure]:
    address = urlsplit(context.demo["portal_url"])
    port = address.port or 80
    asked = Asked("/login", {"Host": address.netloc})
    rounds = []
    for _ in range(ROUNDS):
        quiet = _p99(port, asked)
        with ExitStack() as opened:
            for _ in range(SLOW):
                client = opened.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                # With the cookie of a form: without one, the form is refused before its body is read.
                head = f"POST /login HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: csrf={'c' * 32}\r\n{BODY}\r\n\r\n"
                client.sendall(head.encode() + b"username=a")
            rounds.append((_p99(port, asked), quiet))
    yield Figure("bodies_p99", "ms", "the same without slow bodies", rounds, Bar("ratio", RATIO))


@benchmark("lines", f"p99 of a page and of a call while {HOSTILE} clients send expensive lines, over a quiet portal")
def lines(context: Context) -> Iterator[Figure]:
    """`web` answers the page, `doors` refuses the call, which has no token: the requests of one token are limited. The
    peer of `lines_*_text` is the same load of harmless text.
    """
    address = urlsplit(context.demo["portal_url"])
    port, host = address.port or 80, {"Host": address.netloc}
    for name, path in (("web", "/login"), ("doors", "/api/v1/watch")):
        asked = Asked(path, host)
        over_quiet, over_text = [], []
        for _ in range(ROUNDS):
            quiet = _p99(port, asked)
            with _sent(port, host, f"{path}?q={'harmless' * (LINE_BYTES // 8)}"):
                harmless = _p99(port, asked)
            with _sent(port, host, f"{path}?q={WORD * (LINE_BYTES // len(WORD))}"):
                hostile = _p99(port, asked)
            over_quiet.append((hostile, quiet))
            over_text.append((hostile, harmless))
        yield Figure(f"lines_{name}_p99", "ms", "the same without these lines", over_quiet, Bar("ratio", RATIO))
        yield Figure(f"lines_{name}_text_p99", "ms", "lines of harmless text", over_text, Bar("ratio", RATIO))


def _p99(port: int, asked: Asked) -> float:
    return p99(Pace(port, CONNECTIONS, ANSWERS).run(lambda _index: asked, A_SECOND, REQUESTS))


@contextmanager
def _sent(port: int, host: dict[str, str], path: str) -> Iterator[None]:
    """Inside, and until all are answered, many clients send this line."""
    pace = Pace(port, HOSTILE, ANSWERS)
    arguments = (lambda _index: Asked(path, host), LINES_A_SECOND, LINES_A_SECOND * REQUESTS // A_SECOND)
    with ThreadPoolExecutor(1) as sender:
        sent = sender.submit(pace.run, *arguments)
        yield
        sent.result()
