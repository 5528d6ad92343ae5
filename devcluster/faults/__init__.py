"""Proxies on loopback that inject faults: `ApiProxy` for the API server, `TcpProxy` for PostgreSQL and Redis; and
`VanishingHost`, from which no packet arrives any more.
"""
