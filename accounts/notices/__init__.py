"""A person's list of notices and how the person wants to be notified. Notices are written with events (`events`)."""
