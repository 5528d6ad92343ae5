"""Units in use by minute and hour, waiting times and GPU-hours of runs, and the figures of a month."""
