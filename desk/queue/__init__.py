"""The whole queue for staff: every queued run, what blocks it, hold and release. Nothing of a single team's page."""
