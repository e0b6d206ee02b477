"""nn.parallel on one device, nn.attention, nn.grad, LinearCrossEntropyLoss."""

import importlib
from typing import Any

from compat_tests import case, tensor
from compat_tests.nn.running import attempt, run_layer


@case
def case_data_parallel(torch: Any) -> Any:
    m = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    return [repr(m), list(m.state_dict()), m(torch.ones(1, 2)), m.device_ids]


@case
def case_distributed_without_a_group(torch: Any) -> Any:
    return attempt(lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)))


@case
def case_attention_kernels(torch: Any) -> Any:
    A = torch.nn.attention
    q = tensor(torch, (1, 2, 3, 4))
    with A.sdpa_kernel(A.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    return [
        out,
        [int(b) for b in (A.SDPBackend.ERROR, A.SDPBackend.MATH, A.SDPBackend.FLASH_ATTENTION)],
        attempt(lambda: A.sdpa_kernel(3).__enter__()),
    ]


@case(rtol=1e-4, atol=1e-5)
def case_flex_attention(torch: Any) -> Any:
    flex = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    q, k, v = (tensor(torch, (2, 2, 4, 8), seed=n) for n in range(3))
    bias = tensor(torch, (2,), seed=4)

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    def near(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (i - j).abs() <= 1

    mask = flex.create_block_mask(causal, None, None, 4, 4, device="cpu")
    both = flex.create_block_mask(flex.and_masks(causal, near), 2, 2, 4, 4, device="cpu")
    out, lse = flex.flex_attention(q, k, v, return_lse=True)
    return [
        out,
        lse,
        flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h] * (i - j)),
        flex.flex_attention(q, k, v, block_mask=mask, scale=0.5),
        flex.flex_attention(q, k, v, block_mask=both),
        flex.flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
        flex.create_mask(causal, 1, 1, 3, 4, device="cpu"),
    ]


@case(rtol=1e-4, atol=1e-5)
@case.params("n", [1, 2, 3])
def case_convolution_gradients(torch: Any, n: int) -> Any:
    grad, F = torch.nn.grad, torch.nn.functional
    x, w = tensor(torch, (2, 4, *[5] * n)), tensor(torch, (6, 2, *[3] * n), seed=1)
    out = getattr(F, f"conv{n}d")(x, w, None, 2, 1, 1, 2)
    return [
        getattr(grad, f"conv{n}d_input")(x.shape, w, out, 2, 1, 1, 2),
        getattr(grad, f"conv{n}d_weight")(x, w.shape, out, 2, 1, 1, 2),
    ]


@case(rtol=1e-4, atol=1e-5)
@case.params(
    "text",
    [
        "nn.LinearCrossEntropyLoss(6, 5)",
        "nn.LinearCrossEntropyLoss(6, 5, bias=True, reduction='sum', label_smoothing=0.1, weight=p(5))",
        "nn.LinearCrossEntropyLoss(6, 5, weight=p(4))",
        "nn.LinearCrossEntropyLoss(6, 5, label_smoothing=2)",
    ],
)
def case_linear_cross_entropy(torch: Any, text: str) -> Any:
    return run_layer(torch, text, ("x(4,6)", "torch.tensor([0, 4, 2, 1])"))
