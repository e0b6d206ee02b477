"""Random functions on tensors: PyTorch's CPU stream, drawn on the host at once. Draws never wait for a program."""
