"""How administrators create an account, and how its user sets a password with a code from them."""
