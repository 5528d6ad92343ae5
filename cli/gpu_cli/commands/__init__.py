"""The commands of `gpu`, one module a subject: arguments in, one call or more, a table out."""
