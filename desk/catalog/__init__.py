"""Pages of the catalog: all classes as cards, comparison, recommendation. The page of one class is in desk.classes."""
