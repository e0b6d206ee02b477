"""torch.version."""

__version__ = "2.13.0"
debug = False
cuda = None
hip = None
xpu = None
git_version = "torchlike"
