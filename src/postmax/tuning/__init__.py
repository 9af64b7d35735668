"""Choosing settings on noisy validation labels."""
