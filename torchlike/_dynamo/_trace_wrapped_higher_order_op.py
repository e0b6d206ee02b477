"""torch._dynamo._trace_wrapped_higher_order_op: one context that other libraries enter."""

import contextlib


class TransformGetItemToIndex(contextlib.AbstractContextManager):
    """A context in which PyTorch's vmap indexes by tensors; indexing does that anyway."""

    def __exit__(self, *unused: object) -> None:
        pass
