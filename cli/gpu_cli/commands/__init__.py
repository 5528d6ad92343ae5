"""The commands of `gpu`, one module per subject: arguments in, one or more calls, a table out."""
