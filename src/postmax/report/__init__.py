"""What people read about results: the page of a run, the page of a table, and tables as text.

Nothing is imported here, so that the page of a run does not load the code for tables.
"""
