"""Project wiring: settings, URL map, processes; and the rooms that every app stands on."""
