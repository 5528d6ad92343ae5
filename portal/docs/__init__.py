"""The API described for people: the contract, its reference page, examples of bodies and curl calls."""
