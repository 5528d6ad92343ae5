"""API tokens: their text, who may make, list and revoke them, and how a call shows one."""
