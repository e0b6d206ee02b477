"""torch._inductor: its settings, which have no effect. XLA compiles."""

from torchlike._inductor import config as config
