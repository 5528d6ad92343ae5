"""How connections to PostgreSQL and Redis are kept and tested, where Redis and Prometheus are, and how settings name
objects of the cluster. No queries.
"""
