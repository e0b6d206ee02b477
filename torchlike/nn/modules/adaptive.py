"""AdaptiveLogSoftmaxWithLoss."""

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.container import ModuleList, Sequential
from torchlike.nn.modules.linear import Linear
from torchlike.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes ordered by frequency (Grave et al., 2017): frequent ones in a head, the others in
    clusters whose hidden size is in_features / div_value ** k.

    cutoffs: where clusters begin. ValueError: they are not increasing integers in [1, n_classes - 1]."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where "
                "each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for k, (start, stop) in enumerate(pairwise(self.cutoffs)):
            hidden = int(in_features // (div_value ** (k + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, stop - start, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        pair: Any
        for pair in self.tail:
            inner, outer = pair
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(N, in_features), (N,) class numbers -> (output (N,): log-probability of each target, loss: -mean)

        RuntimeError: shapes that do not fit, or a target that is no class."""
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if batched:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif input_.dim() != 1:
            raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}")
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        # Every cluster is computed for the whole batch: shapes then do not depend on the data, so that the step stays
        # one
        # compiled program. The cost is that of a small full softmax.
        column = target
        output = 0
        for k, (start, stop) in enumerate(pairwise(self.cutoffs)):
            inside = (target >= start) & (target < stop)
            column = torch.where(inside, self.shortlist_size + k, column)
            local = torch.where(inside, target - start, 0)
            logprob = F.log_softmax(self.tail[k](input), dim=1).gather(1, local.unsqueeze(1)).squeeze(1)
            output = output + torch.where(inside, logprob, 0.0)
        output = output + F.log_softmax(self.head(input), dim=1).gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for k, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + k].unsqueeze(1))
        return torch.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """(N, in_features) -> (N, n_classes) log-probabilities"""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """(N, in_features) -> (N,) the most probable class of each.

        As in PyTorch, a sample whose most probable head entry is a class of the head gets that class, even if some
        class of a cluster is more probable in the end."""
        head_output = self.head(input)
        best = torch.argmax(head_output, dim=1)
        full = torch.argmax(self._get_full_log_prob(input, head_output), dim=1)
        return torch.where(best >= self.shortlist_size, full, best)
