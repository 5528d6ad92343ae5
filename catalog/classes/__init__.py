"""Classes of GPUs: their life cycle, their rules and what they read as."""
