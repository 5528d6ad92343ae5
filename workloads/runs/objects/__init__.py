"""Objects of a run beside its Job: its Secret, its pull secret, and objects that a worker did not record."""
