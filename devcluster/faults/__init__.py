"""Loopback proxies that misbehave on request: `ApiProxy` for the API server, `TcpProxy` for PostgreSQL and Redis."""

from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES, Call, Rule
from devcluster.faults.tcp_proxy import TcpProxy

__all__ = ["WRITES", "ApiProxy", "Call", "Rule", "TcpProxy"]
