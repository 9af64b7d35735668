"""One detector in each file. All of them are imported before the first audit."""
