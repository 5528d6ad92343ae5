"""Objects of a run beside its Job: its Secret, its pull secret, and what a worker made and did not write down."""
