"""Tables of runs: what to run, running it whatever happens, and what came out."""
