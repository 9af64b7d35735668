"""Small parts that several methods share."""
