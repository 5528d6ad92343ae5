"""Whether the portal only observes a cluster: then none of its processes writes to it, and what is due waits."""
