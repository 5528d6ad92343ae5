"""How connections to PostgreSQL and Redis are kept and tested, and where Redis and Prometheus are. No queries."""
