"""flex_attention: attention with the user's own change of scores, and masks as functions.

Score and mask functions are written for one element; here they are called once with index tensors that broadcast to
all of them. So they must be made of elementwise operations and indexing, as PyTorch asks too."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Every query sees every key."""
    return torch.ones((), dtype=torch.bool, device=token_q.device)


def and_masks(*mask_mods: Callable) -> Callable:
    """A mask that allows what all of these allow. RuntimeError: one is no function."""
    return _combined(mask_mods, lambda a, b: a & b, True)


def or_masks(*mask_mods: Callable) -> Callable:
    """A mask that allows what one of these allows. RuntimeError: one is no function."""
    return _combined(mask_mods, lambda a, b: a | b, False)


def _combined(mask_mods: tuple, join: Callable, start: bool) -> Callable:
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = torch.full((), start, dtype=torch.bool, device=q.device)
        for m in mask_mods:
            result = join(result, m(b, h, q, kv))
        return result

    return mask


def _indices(batch: int, heads: int, q_len: int, kv_len: int, device: Any) -> tuple[Tensor, ...]:
    """Index tensors that broadcast to (batch, heads, q_len, kv_len)."""
    out = []
    for position, size in enumerate((batch, heads, q_len, kv_len)):
        shape = [1, 1, 1, 1]
        shape[position] = size
        out.append(torch.arange(size, device=device).reshape(shape))
    return tuple(out)


class BlockMask:
    """A mask given as a function, for sequences of fixed lengths; `create_block_mask` makes it."""

    def __init__(self, mask_mod: Callable, shape: tuple[int, int, int, int], block_size: tuple[int, int]) -> None:
        self.mask_mod = mask_mod
        self._shape = shape
        self.BLOCK_SIZE = block_size
        self.seq_lengths = shape[2:]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, q_len, kv_len)"""
        return self._shape

    def numel(self) -> int:
        """The number of elements that it decides on."""
        b, h, q, kv = self._shape
        return b * h * q * kv

    def dense(self, device: Any = None) -> Tensor:
        """(batch, heads, q_len, kv_len) bool: True where a query sees a key."""
        return create_mask(self.mask_mod, *self._shape, device=device)

    def to_dense(self) -> Tensor:
        """(batch, heads, q blocks, kv blocks) int: 1 where some element of a block is seen."""
        b, h, q, kv = self._shape
        size_q, size_kv = self.BLOCK_SIZE
        rows, columns = -(-q // size_q), -(-kv // size_kv)
        padded = torch.zeros(b, h, rows * size_q, columns * size_kv, dtype=torch.bool)
        padded[:, :, :q, :kv] = self.dense()
        return padded.reshape(b, h, rows, size_q, columns, size_kv).any(5).any(3).to(torch.int32)

    def sparsity(self) -> float:
        """The percentage of blocks that are not seen at all."""
        return 100 * (1 - self.to_dense().double().mean().item())

    def to(self, device: Any) -> "BlockMask":
        """The same; the mask is made where it is used."""
        return self


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """(B, H, Q_LEN, KV_LEN) bool: mod_fn(b, h, q, kv) for every element; B or H None means 1."""
    b, h, q, kv = _indices(B or 1, H or 1, Q_LEN, KV_LEN, device)
    return mod_fn(b, h, q, kv).broadcast_to((B or 1, H or 1, Q_LEN, KV_LEN))


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """The mask mask_mod(b, h, q, kv) for these sizes; B or H None: the same for all batches or heads."""
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block)  # type: ignore[arg-type]


class AuxRequest(NamedTuple):
    """Which further results flex_attention gives."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results: the log of each query's sum of exponentials, and its largest score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """(B, Hq, L, E), (B, H, S, E), (B, H, S, Ev) -> (B, Hq, L, Ev): softmax(score_mod(query @ keyᵀ · scale)) @ value.

    score_mod(score, b, h, q, kv): a new score. block_mask: which scores count. kernel_options: accepted; XLA chooses.
    return_lse: also the log of each query's sum of exponentials. A query that sees no key gives zeros.

    ValueError: head counts that do not fit."""
    heads, own = query.size(-3), key.size(-3)
    if not enable_gqa and heads != own:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={own}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa:
        if heads % own != 0:
            raise ValueError(
                f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={own}."
            )
        key = key.repeat_interleave(heads // own, -3)
        value = value.repeat_interleave(heads // own, -3)
    half = query.dtype in (torch.float16, torch.bfloat16)
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = (scores.float() if half else scores) * (query.size(-1) ** -0.5 if scale is None else scale)
    batch, _, q_len, kv_len = scores.shape
    indices = _indices(batch, heads, q_len, kv_len, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *indices)
    if block_mask is not None:
        b, h = block_mask.shape[:2]
        first = tuple(i if n > 1 else torch.zeros_like(i[:1, :1]) for i, n in zip(indices[:2], (b, h)))
        scores = scores.masked_fill(~block_mask.mask_mod(*first, *indices[2:]), float("-inf"))
    lse = torch.logsumexp(scores, -1)
    nothing = lse == float("-inf")
    weights = torch.exp(scores - lse.masked_fill(nothing, 0.0).unsqueeze(-1))
    out = torch.matmul(weights.to(query.dtype), value)
    if return_aux is not None:
        top = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, top)
    return (out, lse) if return_lse else out
