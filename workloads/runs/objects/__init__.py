"""Objects of a run beside its Job: its Secret, its pull secret, and what a worker created and did not record."""
