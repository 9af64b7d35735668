"""Classifiers from tables in memory: columns to numbers, many small networks side by side, and the noise they reveal.

This room holds the parts of `postmax.FPMLClassifier`. It reads no files and writes none.
"""
