"""How busy the GPUs of a run and of a team were: on their pages and in the API."""
