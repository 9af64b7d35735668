"""The packages with frozen networks for images, one file each."""
