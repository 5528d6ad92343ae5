"""Announcements of operators to everybody, to the users of classes or to teams: who sees them, and who acknowledged
them. The one text for everybody that also shows before sign-in is catalog.banner.
"""
