"""Child processes that never outlive their supervisor, their ports and files, and messages for the user of the
terminal. Only the standard library, because bootstrap.py imports these modules before anything is installed.
"""
