"""PyTorch's CPU random streams on NumPy: see README.md in this folder."""
