"""What stands around every page: navigation, the switcher of teams, the call that a page is; no page's own content."""
