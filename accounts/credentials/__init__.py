"""Authentication of users: password, second factor, sessions; and the user's own Account page."""
