"""Pages of the catalog: all classes as cards, comparison, recommendation. One class in full is in desk.classes."""
