"""What would help a run that waits or is stuck: facts, suggested actions best first, and the same for pages and API."""
