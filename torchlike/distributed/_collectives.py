"""The collective operations of one process: what it gives is what it gets."""

from typing import Any

from torchlike._src.tensor.tensor import TensorBase
from torchlike.autograd.grad_mode import no_grad
from torchlike.distributed._group import ProcessGroup, ReduceOp, Work, found

__all__ = [
    "P2POp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "gather", "gather_object", "irecv", "isend", "monitored_barrier", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send", "send_object_list",
]  # fmt: skip


def _checked(value: Any, name: str) -> Any:
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value


def _checked_list(values: Any, name: str) -> list[Any]:
    if not isinstance(values, list):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    if not all(isinstance(v, TensorBase) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type {[type(v) for v in values]}."
        )
    return values


def _one(values: Any, name: str, operation: str) -> Any:
    values = _checked_list(values, name)
    if len(values) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::{operation}: invalid output tensor list at index 0 (expected length 1, got "
            f"{len(values)})"
        )
    return values[0]


def _root(operation: str, *ranks: int | None) -> None:
    if operation == "reduce" and all(rank is None for rank in ranks):
        raise ValueError("Must specify global_rank or group_rank")
    for rank in ranks:
        if rank not in (None, 0):
            raise RuntimeError(f"ProcessGroupGloo::{operation}: invalid root rank: {rank}")


def _done(group: ProcessGroup | None, async_op: bool, result: Any) -> Work | None:
    found(group)
    return Work(result) if async_op else None


def _sizes(t: Any) -> str:
    return f"({', '.join(map(str, t.shape))})"


def _copied(out: Any, value: Any, group: ProcessGroup | None, async_op: bool, operation: str) -> Work | None:
    found(group)
    if out.shape != value.shape:
        raise RuntimeError(
            f"ProcessGroupGloo::{operation}: invalid tensor size at index 0 (expected {_sizes(value)}, got "
            f"{_sizes(out)})"
        )
    if out.dtype is not value.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypesFound {out.dtype} and  {value.dtype}")
    with no_grad():
        out.copy_(value)
    return Work([out]) if async_op else None


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op: bool = False) -> Work | None:
    """`tensor` is the sum over all processes. With async_op a Work, as everywhere below."""
    return _done(group, async_op, [_checked(tensor, "tensor")])


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op: bool = False) -> Work | None:
    """As all_reduce, for several tensors."""
    tensors = [tensors] if isinstance(tensors, TensorBase) else tensors
    return _done(group, async_op, _checked_list(tensors, "tensor"))


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op: bool = False, group_dst=None) -> Work | None:
    """As all_reduce, for process `dst`."""
    _checked(tensor, "tensor")
    found(group)
    _root("reduce", dst, group_dst)
    return _done(group, async_op, [tensor])


def broadcast(tensor, src=None, group=None, async_op: bool = False, group_src=None) -> Work | None:
    """`tensor` is that of process `src`."""
    _checked(tensor, "tensor")
    found(group)
    if src is None and group_src is None:
        raise ValueError("Must specify global_rank or group_rank")
    _root("broadcast", src, group_src)
    return _done(group, async_op, [tensor])


def all_gather(tensor_list, tensor, group=None, async_op=False) -> Work | None:
    """tensor_list gets the tensors of all processes."""
    _checked(tensor, "tensor")
    found(group)
    return _copied(_one(tensor_list, "tensor_list", "allgather"), tensor, group, async_op, "allgather")


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op: bool = False) -> Work | None:
    """As all_gather, for several tensors."""
    (outs,) = output_tensor_lists
    for out, value in zip(outs, _checked_list(input_tensor_list, "tensor_list"), strict=True):
        _copied(out, value, group, False, "allgather_coalesced")
    return _done(group, async_op, outs)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False) -> Work | None:
    """output_tensor gets the tensors of all processes, side by side."""
    _checked(input_tensor, "input_tensor")
    return _copied(_checked(output_tensor, "output_tensor"), input_tensor, group, async_op, "allgather")


all_gather_single = all_gather_into_tensor


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op: bool = False) -> Work | None:
    """`output` gets this process's part of the sum."""
    _checked(output, "output")
    found(group)
    return _copied(output, _one(input_list, "input_list", "reduce_scatter"), group, async_op, "reduce_scatter")


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False) -> Work | None:
    """`output` gets this process's part of the sum."""
    _checked(input, "input")
    return _copied(_checked(output, "output"), input, group, async_op, "reduce_scatter")


reduce_scatter_single = reduce_scatter_tensor


def scatter(tensor, scatter_list=None, src=None, group=None, async_op: bool = False, group_src=None) -> Work | None:
    """`tensor` gets this process's element of the list of process `src`."""
    _checked(tensor, "tensor")
    found(group)
    _root("scatter", src, group_src)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    return _copied(tensor, _one(scatter_list, "scatter_list", "scatter"), group, async_op, "scatter")


def gather(tensor, gather_list=None, dst=None, group=None, async_op: bool = False, group_dst=None) -> Work | None:
    """gather_list, of process `dst`, gets the tensors of all."""
    _checked(tensor, "tensor")
    found(group)
    _root("gather", dst, group_dst)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return _copied(_one(gather_list, "gather_list", "gather"), tensor, group, async_op, "gather")


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op: bool = False) -> Work | None:
    """Each process's k-th output is process k's input for it."""
    value = _one(input_tensor_list, "input_tensor_list", "alltoall")
    return _copied(_one(output_tensor_list, "output_tensor_list", "alltoall"), value, group, async_op, "alltoall")


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op: bool = False
) -> Work | None:  # fmt: skip
    """As all_to_all, in one tensor."""
    return _copied(_checked(output, "output"), _checked(input, "input"), group, async_op, "alltoall")


def barrier(group=None, async_op: bool = False, device_ids=None, timeout=None) -> Work | None:
    """All processes are here."""
    return _done(group, async_op, None)


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """All processes are here."""
    found(group)


# -- objects -----------------------------------------------------------------------------------------------------------


def all_gather_object(object_list, obj, group=None) -> None:
    """object_list gets the objects of all processes."""
    found(group)
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """object_gather_list, of process `dst`, gets the objects of all."""
    found(group)
    _root("gather", dst, group_dst)
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """object_list is that of process `src`."""
    found(group)
    _root("broadcast", src, group_src)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
) -> None:  # fmt: skip
    """The first element of the output list is this process's element of the input list of process `src`."""
    found(group)
    _root("scatter", src, group_src)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if not scatter_object_input_list or len(scatter_object_input_list) != 1:
        raise ValueError("source rank must provide non-empty scatter_object_input_list")
    scatter_object_output_list[0] = scatter_object_input_list[0]


# -- from one process to another ---------------------------------------------------------------------------------------


def _nobody(group: ProcessGroup | None, rank: int | None, name: str) -> Any:
    found(group)
    if rank == 0:
        raise ValueError(f"Invalid {name} rank: {name} rank should not be the same as the rank of the current process.")
    raise ValueError("torchlike: there is no other process in a group of one")


def send(tensor, dst=None, group=None, tag: int = 0, group_dst=None) -> None:
    """ValueError: there is nobody else."""
    _nobody(group, dst if dst is not None else group_dst, "destination")


def recv(tensor, src=None, group=None, tag: int = 0, group_src=None) -> int:
    """ValueError: there is nobody else."""
    return _nobody(group, src if src is not None else group_src, "source")


def isend(tensor, dst=None, group=None, tag: int = 0, group_dst=None) -> Work | None:
    """ValueError: there is nobody else."""
    return _nobody(group, dst if dst is not None else group_dst, "destination")


def irecv(tensor, src=None, group=None, tag: int = 0, group_src=None) -> Work | None:
    """ValueError: there is nobody else."""
    return _nobody(group, src if src is not None else group_src, "source")


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch: bool = False) -> None:
    """ValueError: there is nobody else."""
    _nobody(group, dst if dst is not None else group_dst, "destination")


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch: bool = False) -> None:
    """ValueError: there is nobody else."""
    _nobody(group, src if src is not None else group_src, "source")


class P2POp:
    """An operation for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag: int = 0, group_peer=None) -> None:
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Each operation in turn."""
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
