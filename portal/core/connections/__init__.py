"""How connections to PostgreSQL and Redis are kept and tested, and where Redis is. No queries, no messages."""
