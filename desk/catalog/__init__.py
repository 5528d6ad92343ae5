"""The catalog as a person meets it: all classes as cards, side by side, and the recommendation. One class in full is in
desk.classes.
"""
