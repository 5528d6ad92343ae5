"""Units in use, sampled once a minute and stored by the hour."""
