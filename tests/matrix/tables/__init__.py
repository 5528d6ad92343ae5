"""Tables of what each route answers to each role."""
