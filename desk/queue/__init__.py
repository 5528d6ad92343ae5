"""The whole queue for staff: every queued run, what blocks it, pause and resume of scheduling."""
