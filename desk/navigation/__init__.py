"""Elements around every page: navigation, the team switcher, and the API equivalent of the page."""
