"""The catalog's editor for operators: forms for classes and images, and a plan before a class is changed."""
