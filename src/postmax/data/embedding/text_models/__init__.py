"""The packages with frozen models for texts, one file each."""
