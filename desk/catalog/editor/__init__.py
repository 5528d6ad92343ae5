"""The catalog's editor for operators: forms for classes, and a plan of each change before it is made."""
