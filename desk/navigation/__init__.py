"""What is around every page: navigation, the switcher of teams, and the API equivalent of the page."""
