"""How somebody proves who they are: password, second factor, sessions; and the page of one's own account."""
