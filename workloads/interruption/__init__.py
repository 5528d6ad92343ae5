"""Whether the queue may preempt a run, how it did, and what is lost. Emails about it are sent in `runs`."""
