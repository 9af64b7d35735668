"""A table of results for people: as a page, in the terminal, as Markdown and as JSON."""
