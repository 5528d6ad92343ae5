"""Options that only jobs have: several workers, a script, retries, checkpoints."""
