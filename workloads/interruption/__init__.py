"""How the queue may interrupt a run, how it did, and what is lost by it. Mails about it are sent in `runs`."""
