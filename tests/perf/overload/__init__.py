"""More load than the portal can carry: what still works, and how it recovers."""
