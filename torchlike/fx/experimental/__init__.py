"""torch.fx.experimental: nothing is traced with symbolic shapes."""
