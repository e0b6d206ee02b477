"""SparseAdam: Adam for gradients of a sparse layout."""

from typing import Any

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_betas, check_lr
from torchlike.optim.optimizer import Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that updates only where a sparse gradient has entries. There are no sparse gradients here yet.

    RuntimeError: a dense gradient. NotImplementedError: a sparse one."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 < lr, "Invalid learning rate: {}", lr)
        check(0.0 < eps, "Invalid epsilon value: {}", eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [([i, k], p) for i, group in enumerate(self.param_groups) for k, p in enumerate(group["params"])]
        sparse = [place for place, p in places if getattr(p, "is_sparse", False)]
        check(not sparse, "Sparse params at indices {}: SparseAdam requires dense parameter tensors", sparse)
        complexes = [place for place, p in places if p.is_complex()]
        check(
            not complexes,
            "Complex params at indices {}: SparseAdam does not support complex parameters",
            complexes,
        )

    def step(self, closure: Any = None) -> Any:
        """Refuse dense gradients as PyTorch does; sparse ones are not implemented."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is None:
                    continue
                if not getattr(p._grad, "is_sparse", False):
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                raise NotImplementedError("SparseAdam on sparse gradients")
        return loss
