"""The parts of the page of a single run."""
