"""What hardware the nodes and device slices have, and the class that each kind would make. Makes no class; see
`catalog.classes.proposals`.
"""
