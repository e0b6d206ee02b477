"""Files of tensors: PyTorch's zip archives and its older stream format."""
