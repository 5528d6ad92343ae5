"""Loopback proxies that misbehave on request: `ApiProxy` for the API server, `TcpProxy` for PostgreSQL and Redis."""
