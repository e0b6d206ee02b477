"""Dtypes, devices, shapes, promotion and errors: what needs no arrays."""
