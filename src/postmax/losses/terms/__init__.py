"""The loss terms, one file for each. A file here that calls `register` is found without being listed anywhere."""
