"""Objects of a run besides its Job: its Secret, its pull secret, and objects that a worker did not record. And how runs
and Jobs differ after a database was restored, with what may be decided then.
"""
