"""Running many jobs: what is left to do, who does it, and how long it will take."""
