"""What the GPUs of runs did, read from Prometheus once a minute and stored by the hour."""
