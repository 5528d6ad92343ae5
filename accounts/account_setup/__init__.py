"""How administrators make an account, and how a code from them sets its password."""
