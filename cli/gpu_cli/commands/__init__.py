"""The commands of `gpu`, one module per subject: they make calls of the API and print the result."""
