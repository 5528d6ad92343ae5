"""What only a job may be asked to do: several workers, a script, retries, checkpoints."""
