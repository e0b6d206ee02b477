"""Convolution, pooling, normalisation, attention, dropout and vision functions."""

from compat_tests import case, grads, raises, tensor

CONVOLUTIONS = {
    "few_channels": (2, "2,3,9,8 4,3,3,3 4", {}),
    "strided": (2, "2,8,9,8 4,8,3,3 4", {"stride": 2, "padding": 1}),
    "dilated": (2, "2,8,9,8 4,8,3,2", {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    "unbatched": (2, "8,9,8 4,8,3,3 4", {}),
    "pointwise": (2, "2,8,9,8 4,8,1,1 4", {"stride": 2, "padding": 1}),
    "depthwise": (2, "2,8,9,8 8,1,3,3 8", {"groups": 8, "stride": 2, "padding": 1}),
    "grouped": (2, "2,8,9,8 4,4,3,3 4", {"groups": 2}),
    "same": (2, "2,8,9,8 4,8,3,4 4", {"padding": "same", "dilation": 2}),
    "line": (1, "2,8,9 4,8,3 4", {"stride": 2, "padding": 1}),
    "volume": (3, "2,6,5,6,7 4,6,3,3,2 4", {"stride": 2, "padding": 1}),
}
TRANSPOSED = {
    "plain": (2, "2,3,5,6 3,4,3,3 4", {}),
    "strided": (2, "2,8,5,6 8,4,3,3 4", {"stride": 2, "padding": 1, "output_padding": 1}),
    "grouped": (2, "2,8,5,6 8,2,3,3 4", {"stride": 2, "padding": 1, "groups": 2, "dilation": 2}),
    "unbatched": (2, "8,5,6 8,4,3,3", {}),
    "line": (1, "2,8,5 8,4,3 4", {"stride": 2}),
    "volume": (3, "2,8,3,4,5 8,4,3,2,2 4", {"stride": 2}),
}
LOOSE = {"rtol": 1e-4, "atol": 1e-4}


def operands(torch, text, dtype="float32", need=True):
    shapes = [tuple(int(n) for n in part.split(",")) for part in text.split()]
    return [tensor(torch, s, dtype, seed, requires_grad=need) for seed, s in enumerate(shapes)]


def with_node(torch, function, *inputs):
    out = function(*inputs)
    first = out[0] if isinstance(out, tuple) else out
    return {"node": first.grad_fn.name(), **grads(torch, function, *inputs)}


@case(**LOOSE)
@case.params("name", list(CONVOLUTIONS))
def case_convolution(torch, name):
    n, shapes, settings = CONVOLUTIONS[name]
    function = getattr(torch.nn.functional, f"conv{n}d")
    return with_node(torch, lambda *a: function(*a, **settings), *operands(torch, shapes))


@case(**LOOSE)
@case.params("name", list(TRANSPOSED))
def case_transposed_convolution(torch, name):
    n, shapes, settings = TRANSPOSED[name]
    function = getattr(torch.nn.functional, f"conv_transpose{n}d")
    return with_node(torch, lambda *a: function(*a, **settings), *operands(torch, shapes))


CONVOLUTION_ERRORS = [
    ("2,1,8,8 4,3,3,3", {}), ("8,8 4,3,3,3", {}), ("2,3,8,8 4,3,3,3 5", {}), ("2,3,2,2 4,3,3,3", {}),
    ("2,3,8,8 4,3,3,3", {"groups": 2}), ("2,4,8,8 5,2,3,3", {"groups": 2}), ("2,3,8,8 4,3,3,3", {"stride": 0}),
    ("2,3,8,8 4,3,3,3", {"padding": -1}), ("2,3,8,8 4,3,3,3", {"dilation": 0}),
    ("2,3,8,8 4,3,3,3", {"stride": (1, 2, 3)}), ("2,3,8,8 4,3,3,3", {"padding": "same", "stride": 2}),
    ("2,3,8,8 4,3,3,3", {"padding": "foo"}),
]  # fmt: skip


@case()
def case_convolution_errors(torch):
    F = torch.nn.functional
    found = [
        raises(torch, lambda s=s, k=k: F.conv2d(*operands(torch, s, need=False), **k)) for s, k in CONVOLUTION_ERRORS
    ]
    x, w = operands(torch, "2,3,8,8 4,3,3,3", need=False)
    for n, x_shape, w_shape in ((1, (3, 8, 8), (4, 3, 3, 3)), (1, (3, 8), (4, 3, 3, 3)), (2, (2, 3, 8), (4, 3, 3))):
        given = [torch.zeros(x_shape), torch.zeros(w_shape)]
        found.append(raises(torch, lambda n=n, given=given: getattr(F, f"conv{n}d")(*given)))
        found.append(raises(torch, lambda n=n, given=given: getattr(F, f"conv_transpose{n}d")(*given)))
    found.append(raises(torch, lambda: F.conv2d(x.double(), w)))
    found.append(raises(torch, lambda: F.conv_transpose2d(x, w)))
    return found


@case()
@case.params(
    "settings",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "ceil_mode": True},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "ceil_mode": True},
        {"kernel_size": 7, "stride": 1, "padding": 3},
    ],  # fmt: skip
)
def case_max_pool(torch, settings):
    (x,) = operands(torch, "2,3,9,10")
    ties = (x.detach() * 2).round()
    ties[0, 0, 3:5, 3:6] = float("nan")
    F = torch.nn.functional
    return {
        "plain": with_node(torch, lambda x: F.max_pool2d(x, **settings), x),
        "indices": F.max_pool2d(ties, return_indices=True, **settings),
    }


@case()
@case.params(
    "settings",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        {"kernel_size": 3, "stride": 2, "divisor_override": 5},
    ],  # fmt: skip
)
def case_avg_pool(torch, settings):
    F = torch.nn.functional
    return with_node(torch, lambda x: F.avg_pool2d(x, **settings), *operands(torch, "2,3,9,10"))


@case()
@case.params("size", [1, 3, (2, 5), (None, 1), 8])
def case_adaptive_pool(torch, size):
    F = torch.nn.functional
    (x,) = operands(torch, "2,3,9,10")
    return [
        with_node(torch, lambda x: F.adaptive_avg_pool2d(x, size), x),
        F.adaptive_max_pool2d(x, size, return_indices=True),
    ]


@case()
def case_other_pools(torch):
    F = torch.nn.functional
    (x,) = operands(torch, "2,3,8,8")
    best, where = F.max_pool2d(x, 2, return_indices=True)
    return [
        F.max_unpool2d(best, where, 2), F.max_pool1d(x[0], 2), F.max_pool3d(x, 2),
        F.avg_pool1d(x[0], 3), F.avg_pool3d(x, 2),
        F.lp_pool2d(x, 2, 3), F.adaptive_avg_pool1d(x[0], 3), F.adaptive_max_pool1d(x[0], 3), F.unfold(x, 3, padding=1),
        F.fold(F.unfold(x, 3), (8, 8), 3),
    ]  # fmt: skip


@case()
def case_pool_errors(torch):
    F = torch.nn.functional
    x, flat, small = operands(torch, "2,3,8,8 8,8 2,3,1,1", need=False)
    calls = [
        lambda: F.max_pool2d(flat, 2), lambda: F.max_pool2d(small, 2), lambda: F.max_pool2d(x, 2, padding=2),
        lambda: F.max_pool2d(x, 2, stride=0), lambda: F.max_pool2d(x, 2, dilation=0),
        lambda: F.max_pool2d(x, (2, 2, 2)),
        lambda: F.max_pool2d(x.bool(), 2), lambda: F.avg_pool2d(x, 2, padding=2), lambda: F.avg_pool2d(small, 2),
        lambda: F.avg_pool2d(x, 2, divisor_override=0), lambda: F.adaptive_avg_pool2d(flat, 3),
        lambda: F.adaptive_avg_pool2d(x, -1), lambda: F.adaptive_avg_pool2d(x, (1, 2, 3)),
    ]  # fmt: skip
    return [raises(torch, call) for call in calls]


@case()
@case.params("training", [True, False])
@case.params("shape", ["6,3", "4,3,5", "4,3,5,6"])
@case.params("dtype", ["float32", "bfloat16"])
def case_batch_norm(torch, training, shape, dtype):
    (x,) = operands(torch, shape, dtype)
    w, b = operands(torch, "3 3")
    mean, var = tensor(torch, 3, seed=7), tensor(torch, 3, seed=8).abs()
    out = with_node(torch, lambda x, w, b: torch.nn.functional.batch_norm(x, mean, var, w, b, training), x, w, b)
    return [out, mean, var]


@case()
def case_norms(torch):
    F = torch.nn.functional
    x, w, b = operands(torch, "4,6,5 6 6")
    y, v, c = operands(torch, "4,5,6 6 6")
    return [
        with_node(torch, lambda x, w, b: F.group_norm(x, 2, w, b), x, w, b),
        with_node(torch, lambda x, w, b: F.instance_norm(x, None, None, w, b), x, w, b),
        with_node(torch, lambda x, w, b: F.layer_norm(x, (6,), w, b), y, v, c),
        with_node(torch, lambda x, w: F.rms_norm(x, (6,), w), y, v),
        with_node(torch, lambda x: F.local_response_norm(x, 3), x),
        with_node(torch, lambda x: F.normalize(x), x),
    ]


@case()
def case_norm_errors(torch):
    F = torch.nn.functional
    x, one, w = operands(torch, "4,3 1,4 4", need=False)
    calls = [
        lambda: F.batch_norm(one, None, None, training=True), lambda: F.batch_norm(x, None, None),
        lambda: F.batch_norm(x, w, w), lambda: F.layer_norm(x, (4,)), lambda: F.layer_norm(x, ()),
        lambda: F.layer_norm(x, (3,), w), lambda: F.layer_norm(x.long(), (3,)), lambda: F.group_norm(x, 2),
        lambda: F.instance_norm(x.unsqueeze(-1)), lambda: F.rms_norm(x, (5,)), lambda: F.local_response_norm(x, 3),
    ]  # fmt: skip
    return [raises(torch, call) for call in calls]


@case(**LOOSE)
@case.params("settings", [{}, {"is_causal": True}, {"scale": 0.3}, {"dropout_p": 0.3}])
def case_attention(torch, settings):
    F = torch.nn.functional
    q, k, v = operands(torch, "2,3,5,4 2,3,5,4 2,3,5,4")
    return with_node(torch, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **settings), q, k, v)


@case(**LOOSE)
def case_attention_masks(torch):
    F = torch.nn.functional
    q, k, v, m = operands(torch, "2,6,5,4 2,6,7,4 2,6,7,4 5,7", need=False)
    keep = m > 0
    keep[2] = False
    return [
        F.scaled_dot_product_attention(q, k, v, keep), F.scaled_dot_product_attention(q, k, v, m),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
        raises(torch, lambda: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2])),
        raises(torch, lambda: F.scaled_dot_product_attention(q, k.double(), v)),
        raises(torch, lambda: F.scaled_dot_product_attention(q, k, v, m.long())),
    ]  # fmt: skip


@case(**LOOSE)
@case.params(
    "settings",
    [{}, {"need_weights": False}, {"average_attn_weights": False}, {"is_causal": True, "need_weights": False}],
)
def case_multi_head_attention(torch, settings):
    F = torch.nn.functional
    q, k, w, b, ow, ob = operands(torch, "4,3,8 4,3,8 24,8 24 8,8 8")
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1)

    def run(q, k, w, b, ow, ob):
        found = F.multi_head_attention_forward(
            q, k, k, 8, 2, w, b, None, None, False, 0.0, ow, ob, attn_mask=mask, **settings
        )
        return tuple(x for x in found if x is not None)

    return grads(torch, run, q, k, w, b, ow, ob)


@case()
@case.params("name", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d"])
@case.params("p", [0.0, 0.3, 1.0])
def case_dropout(torch, name, p):
    F = torch.nn.functional
    function = getattr(F, name)
    return [
        grads(torch, lambda x: function(x, p, True), *operands(torch, "4,5,6")),
        raises(torch, lambda: function(torch.ones(3), 1.5)),
    ]


@case(**LOOSE)
@case.params("mode", ["nearest", "nearest-exact", "area", "bilinear", "bicubic"])
@case.params("settings", [{"size": 3}, {"scale_factor": 2}, {"scale_factor": 1.7}, {"scale_factor": 0.6}])
def case_interpolate(torch, mode, settings):
    F = torch.nn.functional
    return with_node(torch, lambda x: F.interpolate(x, mode=mode, **settings), *operands(torch, "2,3,5,7"))


@case(**LOOSE)
@case.params("mode", ["bilinear", "nearest", "bicubic"])
@case.params("padding", ["zeros", "border", "reflection"])
@case.params("align", [False, True])
def case_grid_sample(torch, mode, padding, align):
    F = torch.nn.functional
    return with_node(torch, lambda x, g: F.grid_sample(x, g, mode, padding, align), *operands(torch, "2,3,4,5 2,5,6,2"))


@case()
def case_vision_others(torch):
    F = torch.nn.functional
    x, theta = operands(torch, "2,8,4,6 2,2,3")
    return [
        with_node(torch, lambda x: F.pixel_shuffle(x, 2), x), with_node(torch, lambda x: F.pixel_unshuffle(x, 2), x),
        with_node(torch, lambda x: F.channel_shuffle(x, 2), x),
        with_node(torch, lambda t: F.affine_grid(t, (2, 3, 4, 5), False), theta),
        F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        F.interpolate(x, size=(3, 4), mode="bicubic", antialias=True),
        raises(torch, lambda: F.interpolate(x, size=2, align_corners=True)), raises(torch, lambda: F.interpolate(x)),
        raises(torch, lambda: F.pixel_shuffle(x, 3)), raises(torch, lambda: F.interpolate(x, size=2, mode="linear")),
    ]  # fmt: skip
