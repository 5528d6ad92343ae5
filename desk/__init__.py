"""Pages, API and commands that combine several apps. It has no models; it writes only through the apps' actions."""
