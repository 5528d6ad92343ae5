"""Whether the queue may preempt a run, how it did, and what is lost. Mails about it are sent in `runs`."""
