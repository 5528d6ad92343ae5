"""Backup of the database and its restore, for `manage.py`: what a backup is, whether this installation can restore it,
and primary keys after it. Not here: files on volumes, and what became of Jobs (workloads/runs/objects).
"""
