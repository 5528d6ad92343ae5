"""Units in use by the minute and hour, waits and GPU-hours of runs, and the figures of a month."""
