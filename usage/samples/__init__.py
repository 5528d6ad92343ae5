"""Units in use, sampled once a minute and stored by the hour; and from when to when each class had how many units."""
