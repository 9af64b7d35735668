"""Tables of runs: what a table is, the runs it takes, and the table made of their results."""
