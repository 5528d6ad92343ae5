"""Which team may have how much: teams, their namespaces, requests, grants and plans."""
