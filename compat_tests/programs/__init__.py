"""Whole programs: what a script prints under PyTorch, it prints under `python -m torchlike`."""
