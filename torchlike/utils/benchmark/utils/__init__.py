"""torch.utils.benchmark.utils: the parts of torch.utils.benchmark."""
