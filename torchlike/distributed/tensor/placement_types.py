"""torch.distributed.tensor.placement_types: descriptions of how a tensor lies on several processes."""

from dataclasses import dataclass

from torchlike._src.core.absent import absent as _absent

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dim of a mesh of processes."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut, along `dim` if that is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the parts are still to be reduced."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Cut along a dim."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Whole in each process."""


@dataclass(frozen=True)
class Partial(Placement):
    """Parts to be reduced."""

    reduce_op: str = "sum"


globals().update(_absent(__name__, ["_StridedShard"], "several processes"))
