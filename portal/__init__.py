"""Project wiring: settings, URL map, processes; and the base packages of all apps."""
