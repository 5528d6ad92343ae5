"""Child processes that are never left behind, their ports and files, and what the person at the keyboard reads.
Standard library only: bootstrap imports it before anything is installed.
"""
