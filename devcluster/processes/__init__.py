"""Child processes that never outlive their supervisor, their ports and files, and output for the user of the terminal.
Standard library only: bootstrap imports it before anything is installed.
"""
