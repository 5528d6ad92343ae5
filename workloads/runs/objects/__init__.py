"""Objects of a run besides its Job: its Secret, its pull secret, and objects that a worker did not record."""
