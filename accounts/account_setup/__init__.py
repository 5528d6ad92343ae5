"""How people come to an account and a password by administrators, with a code."""
