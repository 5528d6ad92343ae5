"""The launch pages: form, links, change."""
