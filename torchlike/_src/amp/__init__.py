"""Autocast: which operators run in which dtype, and the state that torch.amp switches."""
