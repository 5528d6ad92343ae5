"""The other commands of `run.py`: up, test, soak, bench."""
