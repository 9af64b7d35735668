"""The plots of a page: small ones inside the page, and the same plots side by side in files."""
