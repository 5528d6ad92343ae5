"""What the launch form offers, starts with, may be linked to, and shows before anybody presses the button."""
