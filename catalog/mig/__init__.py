"""MIG layouts that a GPU can have, and which of them serve a demand. Pure."""
