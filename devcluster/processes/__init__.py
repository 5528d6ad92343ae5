"""Child processes that are never left behind, their ports and files, and output for the person at the keyboard.
Standard library only: bootstrap imports it before anything is installed.
"""
