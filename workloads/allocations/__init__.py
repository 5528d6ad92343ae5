"""From when to when runs held units, exactly: what GPU-hours and costs are computed from. Read by `usage`."""
