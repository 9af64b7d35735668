"""What the result of a fit says, for the terminal and for its page."""
