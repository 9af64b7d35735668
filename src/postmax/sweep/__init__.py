"""Running many jobs: the jobs that are left, who runs them, and how long they take."""
