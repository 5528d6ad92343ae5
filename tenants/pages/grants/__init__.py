"""The grants of a team, with the buttons to renew and to reduce them."""
