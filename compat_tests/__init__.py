"""Cases written once against a module called `torch`, and what runs and compares them (see README.md)."""

from compat_tests.harness import capture, case, data, grads, raises, tensor, warns

__all__ = ["capture", "case", "data", "grads", "raises", "tensor", "warns"]
