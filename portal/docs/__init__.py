"""Documentation of the API for users: the contract, its reference page, examples of bodies and curl calls."""
