"""API tokens: their text, who may create, list and revoke them, and authentication of API calls."""
