"""torch.distributed.algorithms._checkpoint: see its modules."""
