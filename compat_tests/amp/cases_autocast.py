"""torch.autocast on the CPU: the dtype that each function runs in, casts of weights, nesting, state."""

from compat_tests import capture, case, grads, raises, tensor, warns

DTYPES = ["bfloat16", "float16"]

BINARY = {
    "mm": lambda t, F, a, b: t.mm(a, b.t()),
    "matmul": lambda t, F, a, b: a @ b.t(),
    "bmm": lambda t, F, a, b: t.bmm(a[None], b.t()[None]),
    "mv": lambda t, F, a, b: t.mv(a, b[0]),
    "dot": lambda t, F, a, b: t.dot(a[0], b[0]),
    "vdot": lambda t, F, a, b: t.vdot(a[0], b[0]),
    "outer": lambda t, F, a, b: t.outer(a[0], b[0]),
    "ger": lambda t, F, a, b: t.ger(a[0], b[0]),
    "inner": lambda t, F, a, b: t.inner(a, b),
    "kron": lambda t, F, a, b: t.kron(a, b),
    "einsum": lambda t, F, a, b: t.einsum("ij,kj->ik", a, b),
    "einsum_outer": lambda t, F, a, b: t.einsum("i,j->ij", a[0], b[0]),
    "einsum_mul": lambda t, F, a, b: t.einsum("ij,ij->ij", a, b),
    "einsum_sum": lambda t, F, a, b: t.einsum("ij->i", a),
    "einsum_transpose": lambda t, F, a, b: t.einsum("ij->ji", a),
    "einsum_three": lambda t, F, a, b: t.einsum("ij,kj,kl->il", a, b, b),
    "tensordot": lambda t, F, a, b: t.tensordot(a, b, dims=([1], [1])),
    "tensordot_all": lambda t, F, a, b: t.tensordot(a, b[:3], dims=2),
    "chain_matmul": lambda t, F, a, b: t.chain_matmul(a, b.t(), b),
    "multi_dot": lambda t, F, a, b: t.linalg.multi_dot([a, b.t(), b]),
    "matrix_power": lambda t, F, a, b: t.linalg.matrix_power(a[:, :3], 3),
    "linalg_matmul": lambda t, F, a, b: t.linalg.matmul(a, b.t()),
    "linalg_vecdot": lambda t, F, a, b: t.linalg.vecdot(a, b[:3]),
    "linalg_norm": lambda t, F, a, b: t.linalg.norm(a),
    "norm": lambda t, F, a, b: a.norm(),
    "addmm": lambda t, F, a, b: t.addmm(t.ones(3, 5), a, b.t()),
    "addmv": lambda t, F, a, b: t.addmv(t.ones(3), a, b[0]),
    "addr": lambda t, F, a, b: t.addr(t.ones(4, 4), a[0], b[0]),
    "addbmm": lambda t, F, a, b: t.addbmm(t.ones(3, 5), a[None], b.t()[None]),
    "baddbmm": lambda t, F, a, b: t.baddbmm(t.ones(1, 3, 5), a[None], b.t()[None]),
    "cdist": lambda t, F, a, b: t.cdist(a, b),
    "dist": lambda t, F, a, b: t.dist(a, b[:3]),
    "pdist": lambda t, F, a, b: F.pdist(a),
    "cov": lambda t, F, a, b: t.cov(a),
    "corrcoef": lambda t, F, a, b: t.corrcoef(a),
    "cosine_similarity": lambda t, F, a, b: F.cosine_similarity(a, b[:3]),
    "pairwise_distance": lambda t, F, a, b: F.pairwise_distance(a, b[:3]),
    "linear": lambda t, F, a, b: F.linear(a, b),
    "linear_bias": lambda t, F, a, b: F.linear(a, b, t.ones(5)),
    "bilinear": lambda t, F, a, b: F.bilinear(a, b[:3], t.ones(2, 4, 4)),
    "prelu": lambda t, F, a, b: F.prelu(a, t.tensor([0.25])),
    "relu": lambda t, F, a, b: F.relu(a),
    "gelu": lambda t, F, a, b: F.gelu(a),
    "softmax": lambda t, F, a, b: F.softmax(a, -1),
    "log_softmax": lambda t, F, a, b: F.log_softmax(a, -1),
    "exp": lambda t, F, a, b: a.exp(),
    "pow": lambda t, F, a, b: a**2,
    "sum": lambda t, F, a, b: a.sum(),
    "mean": lambda t, F, a, b: a.mean(0),
    "prod": lambda t, F, a, b: a.prod(),
    "prod_dim": lambda t, F, a, b: a.prod(1),
    "cumsum": lambda t, F, a, b: a.cumsum(0),
    "cumprod": lambda t, F, a, b: a.cumprod(0),
    "logsumexp": lambda t, F, a, b: a.logsumexp(0),
    "trace": lambda t, F, a, b: a.trace(),
    "quantile": lambda t, F, a, b: a.float().quantile(0.3),
    "polar": lambda t, F, a, b: t.polar(a.abs().float(), a.float()),
    "var": lambda t, F, a, b: a.var(0),
    "add": lambda t, F, a, b: a + b[:3],
    "mul": lambda t, F, a, b: a * b[:3],
    "atan2": lambda t, F, a, b: t.atan2(a, b[:3]),
    "addcmul": lambda t, F, a, b: t.addcmul(a, a, a),
    "where": lambda t, F, a, b: t.where(a > 0, a, a * 2),
    "layer_norm": lambda t, F, a, b: F.layer_norm(a, (4,), t.ones(4), t.zeros(4)),
    "rms_norm": lambda t, F, a, b: F.rms_norm(a, (4,), t.ones(4, dtype=a.dtype)),
    "normalize": lambda t, F, a, b: F.normalize(a),
    "cat": lambda t, F, a, b: t.cat([a, b]),
    "stack": lambda t, F, a, b: t.stack([a, a.float()]),
    "cat_mixed": lambda t, F, a, b: t.cat([a.float(), b]),
    "vstack": lambda t, F, a, b: t.vstack([a, b.float()]),
    "index_copy": lambda t, F, a, b: a.index_copy(0, t.tensor([1]), b[:1]),
    "index_copy_mixed": lambda t, F, a, b: a.index_copy(0, t.tensor([1]), b[:1].float()),
    "diff": lambda t, F, a, b: t.diff(a),
    "sdpa": lambda t, F, a, b: F.scaled_dot_product_attention(a[None, None], b[None, None], b[None, None]),
    "sdpa_mask": lambda t, F, a, b: F.scaled_dot_product_attention(
        a[None, None], b[None, None], b[None, None], attn_mask=t.zeros(3, 5)
    ),
}  # fmt: skip


def _ran(torch, function, lower):
    """The result of one function, or the class of its error."""
    try:
        with torch.autocast("cpu", dtype=getattr(torch, lower)):
            return function()
    except (RuntimeError, ValueError, TypeError, IndexError) as e:
        return type(e).__name__


@case(rtol=2e-2, atol=2e-2)
@case.params("lower", DTYPES)
@case.params("name", list(BINARY))
def case_two_operands(torch, name, lower):
    F = torch.nn.functional
    a, b = tensor(torch, (3, 4), seed=1), tensor(torch, (5, 4), seed=2)
    low = getattr(torch, lower)
    out = {"float32": _ran(torch, lambda: BINARY[name](torch, F, a, b), lower)}
    if name not in ("quantile", "polar", "pdist", "bilinear"):
        out["lower"] = _ran(torch, lambda: BINARY[name](torch, F, a.to(low), b.to(low)), lower)
        # PyTorch refuses mixed operands in those before it comes to the product that autocast would cast for.
        if name not in ("inner", "tensordot", "tensordot_all", "chain_matmul", "multi_dot"):
            out["mixed"] = _ran(torch, lambda: BINARY[name](torch, F, a.to(low), b), lower)
    if name != "bilinear":
        out["float64"] = _ran(torch, lambda: BINARY[name](torch, F, a.double(), b.double()), lower)
    return out


LOSSES = {
    "mse": lambda F, x, y: F.mse_loss(x, y),
    "l1": lambda F, x, y: F.l1_loss(x, y),
    "smooth_l1": lambda F, x, y: F.smooth_l1_loss(x, y),
    "huber": lambda F, x, y: F.huber_loss(x, y),
    "bce": lambda F, x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "bce_logits": lambda F, x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "kl_div": lambda F, x, y: F.kl_div(x, y.sigmoid(), reduction="batchmean"),
    "poisson": lambda F, x, y: F.poisson_nll_loss(x, y.abs()),
    "gaussian": lambda F, x, y: F.gaussian_nll_loss(x, y, y.abs() + 1),
    "soft_margin": lambda F, x, y: F.soft_margin_loss(x, y.sign()),
    "hinge_embedding": lambda F, x, y: F.hinge_embedding_loss(x, y.sign()),
    "margin_ranking": lambda F, x, y: F.margin_ranking_loss(x, y, y.sign()),
    "cosine_embedding": lambda F, x, y: F.cosine_embedding_loss(x, y, y[:, 0].sign()),
    "triplet": lambda F, x, y: F.triplet_margin_loss(x, y, y * 2),
    "multilabel_soft_margin": lambda F, x, y: F.multilabel_soft_margin_loss(x, y.sigmoid()),
    "cross_entropy_soft": lambda F, x, y: F.cross_entropy(x, y.softmax(-1)),
}
INDEX_LOSSES = {
    "cross_entropy": lambda F, x, y: F.cross_entropy(x, y),
    "cross_entropy_smooth": lambda F, x, y: F.cross_entropy(x, y, label_smoothing=0.1),
    "nll": lambda F, x, y: F.nll_loss(F.log_softmax(x, -1), y),
    "multi_margin": lambda F, x, y: F.multi_margin_loss(x, y),
}


@case(rtol=1e-3, atol=1e-3)
@case.params("lower", DTYPES)
@case.params("name", list(LOSSES) + list(INDEX_LOSSES))
def case_losses(torch, name, lower):
    F = torch.nn.functional
    x, y = tensor(torch, (3, 4), seed=1), tensor(torch, (3, 4), seed=2)
    low = getattr(torch, lower)
    if name in LOSSES:
        function = LOSSES[name]
    else:
        function, y = INDEX_LOSSES[name], torch.tensor([1, 0, 3])
    soft = y if name in INDEX_LOSSES else y.to(low)
    return [_ran(torch, lambda: function(F, x, y), lower), _ran(torch, lambda: function(F, x.to(low), soft), lower)]


IMAGES = {
    "conv2d": lambda t, F, x: F.conv2d(x, t.ones(2, 2, 3, 3), t.ones(2)),
    "conv1d": lambda t, F, x: F.conv1d(x[:, :, 0], t.ones(2, 2, 3)),
    "conv3d": lambda t, F, x: F.conv3d(x[:, None], t.ones(2, 1, 1, 3, 3)),
    "conv_transpose2d": lambda t, F, x: F.conv_transpose2d(x, t.ones(2, 2, 3, 3), t.ones(2)),
    "conv_same": lambda t, F, x: F.conv2d(x, t.ones(2, 2, 3, 3), padding="same"),
    "batch_norm": lambda t, F, x: F.batch_norm(x, t.zeros(2), t.ones(2), t.ones(2), t.zeros(2), True),
    "batch_norm_eval": lambda t, F, x: F.batch_norm(x, t.zeros(2), t.ones(2), t.ones(2), t.zeros(2)),
    "group_norm": lambda t, F, x: F.group_norm(x, 2, t.ones(2), t.zeros(2)),
    "instance_norm": lambda t, F, x: F.instance_norm(x),
    "max_pool2d": lambda t, F, x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda t, F, x: F.avg_pool2d(x, 2),
    "max_pool3d": lambda t, F, x: F.max_pool3d(x, 2),
    "avg_pool3d": lambda t, F, x: F.avg_pool3d(x, 2),
    "adaptive_avg_pool2d": lambda t, F, x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_avg_pool3d": lambda t, F, x: F.adaptive_avg_pool3d(x, 2),
    "adaptive_max_pool3d": lambda t, F, x: F.adaptive_max_pool3d(x, 2),
    "interpolate_nearest": lambda t, F, x: F.interpolate(x, scale_factor=2),
    "interpolate_bilinear": lambda t, F, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "grid_sample": lambda t, F, x: F.grid_sample(x, t.zeros(1, 2, 2, 2, dtype=x.dtype), align_corners=False),
    "pad_reflect": lambda t, F, x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pad_replicate": lambda t, F, x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "pad_constant": lambda t, F, x: F.pad(x, (1, 1)),
    "pad_circular": lambda t, F, x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    "unfold": lambda t, F, x: F.unfold(x, 2),
    "pixel_shuffle": lambda t, F, x: F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
    "fft": lambda t, F, x: t.fft.rfft(x),
    "inverse": lambda t, F, x: t.linalg.inv(x[0] + 3 * t.eye(6, dtype=x.dtype)),
    "solve": lambda t, F, x: t.linalg.solve(x[0] + 3 * t.eye(6, dtype=x.dtype), x[0]),
    "qr": lambda t, F, x: t.linalg.qr(x[0])[1].abs(),
    "svdvals": lambda t, F, x: t.linalg.svdvals(x[0]),
}


@case(rtol=2e-2, atol=3e-2)
@case.params("lower", DTYPES)
@case.params("name", list(IMAGES))
def case_images(torch, name, lower):
    F = torch.nn.functional
    x = tensor(torch, (1, 2, 6, 6), seed=1)
    low = getattr(torch, lower)
    return [
        _ran(torch, lambda: IMAGES[name](torch, F, x), lower),
        _ran(torch, lambda: IMAGES[name](torch, F, x.to(low)), lower),
    ]


@case(rtol=2e-2, atol=2e-2)
@case.params("lower", DTYPES)
@case.params(
    "name", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "MultiheadAttention", "TransformerEncoderLayer"]
)
def case_modules(torch, name, lower):
    if (name, lower) == ("LSTM", "float16"):
        return None  # PyTorch's kernel for it needs a processor with float16 arithmetic
    torch.manual_seed(1)
    x = tensor(torch, (2, 3, 4), seed=1)
    if name == "MultiheadAttention":
        m = torch.nn.MultiheadAttention(4, 2)
        run = lambda: m(x, x, x)  # noqa: E731
    elif name == "TransformerEncoderLayer":
        m = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
        run = lambda: m(x)  # noqa: E731
    else:
        m = getattr(torch.nn, name)(4, 5)
        given = x[0] if name.endswith("Cell") else x
        run = lambda: m(given)  # noqa: E731
    out = _ran(torch, run, lower)
    if isinstance(out, str):
        return out
    first = out
    while isinstance(first, tuple):
        first = first[0]
    first.float().sum().backward()
    return out, [p.grad for p in m.parameters()]


@case(rtol=2e-2, atol=2e-2)
@case.params("lower", DTYPES)
def case_gradients(torch, lower):
    w = tensor(torch, (5, 4), seed=1, requires_grad=True)
    x = tensor(torch, (3, 4), seed=2, requires_grad=True)

    def run(x, w):
        with torch.autocast("cpu", dtype=getattr(torch, lower)):
            return torch.nn.functional.linear(x, w).tanh().sum()

    return grads(torch, run, x, w)


@case
def case_nesting(torch):
    a = tensor(torch, (3, 3), seed=1)
    seen = []

    def note():
        seen.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), (a @ a).dtype))

    note()
    with torch.autocast("cpu"):
        note()
        with torch.autocast("cpu", enabled=False):
            note()
            with torch.autocast("cpu", dtype=torch.float16):
                note()
            note()
        note()
    note()

    @torch.autocast("cpu")
    def decorated():
        """Kept."""
        note()

    decorated()
    seen.append((decorated.__name__, decorated.__doc__))
    try:
        with torch.autocast("cpu"):
            raise ValueError
    except ValueError:
        note()
    return seen


@case
def case_cache(torch):
    w = tensor(torch, (3, 3), seed=1, requires_grad=True)
    x = tensor(torch, (3, 3), seed=2)
    out = []
    with torch.autocast("cpu"):
        a = x @ w
        with torch.no_grad():
            w.fill_(0.0)
        out += [a, x @ w]
        torch.clear_autocast_cache()
        out.append(x @ w)
    with torch.autocast("cpu"):
        out.append(x @ w)
    with torch.autocast("cpu", cache_enabled=False):
        out.append(torch.is_autocast_cache_enabled())
        a = x @ w
        with torch.no_grad():
            w.fill_(1.0)
        out += [a, x @ w]
        with torch.autocast("cpu"):
            out.append(torch.is_autocast_cache_enabled())
    out.append(torch.is_autocast_cache_enabled())
    with torch.autocast("cpu"):
        with torch.no_grad():
            a = x @ w
        b = x @ w
        out += [a.requires_grad, b.requires_grad]
    return out


@case
def case_out_and_in_place(torch):
    a, b = tensor(torch, (3, 3), seed=1), tensor(torch, (3, 3), seed=2)
    with torch.autocast("cpu"):
        c = torch.mm(a, b, out=torch.empty(3, 3))
        d = torch.ones(3, 3).addmm_(a, b)
        e = torch.ones(3, 3)
        e += a @ b
    return c, d, e


@case
def case_state_functions(torch):
    out = [
        (kind, torch.amp.is_autocast_available(kind), torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda", "xpu", "hpu", "cuda:0")
    ]
    out.append(raises(torch, lambda: torch.amp.is_autocast_available("foo")))
    out.append(raises(torch, lambda: torch.get_autocast_dtype("meta")))
    out.append(torch.is_autocast_enabled())
    out.append(raises(torch, lambda: torch.is_autocast_enabled(3)))
    out.append(raises(torch, lambda: torch.set_autocast_enabled("cpu", 1)))
    torch.set_autocast_dtype("cpu", torch.float16)
    out.append(torch.get_autocast_dtype("cpu"))
    with torch.autocast("cpu"):
        out.append(torch.get_autocast_dtype("cpu"))
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled("cpu", True)
    out.append((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
    torch.set_autocast_enabled("cpu", False)
    out.append((torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()))
    for name in ("get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "is_autocast_cpu_enabled"):
        out.append(warns(torch, getattr(torch, name))[0])
    return out


@case
def case_errors(torch):
    return [
        raises(torch, lambda: torch.autocast("foo")),
        raises(torch, lambda: torch.autocast("meta")),
        raises(torch, lambda: torch.autocast(torch.device("cpu"))),
        raises(torch, lambda: torch.autocast("cpu")(3)),
        raises(torch, lambda: torch.amp.custom_fwd(device_type=torch.device("cpu"))),
        raises(torch, lambda: torch.amp.custom_bwd(device_type=3)),
        warns(torch, lambda: type(torch.autocast("cpu", dtype=torch.float32)).__name__),
    ]


@case
def case_without_cuda(torch):
    a = tensor(torch, (3, 3), seed=1)

    def old():
        with torch.cuda.amp.autocast():
            return (a @ a).dtype

    def new():
        with torch.autocast("cuda"):
            return (a @ a).dtype

    def cpu():
        with torch.cpu.amp.autocast():
            return (a @ a).dtype

    return [warns(torch, f) for f in (old, new, cpu)] + [
        torch.cuda.amp.common.amp_definitely_not_available(),
        warns(torch, lambda: torch.cuda.amp.custom_bwd(len).__name__),
    ]


@case(rtol=1e-2, atol=1e-2)
@case.params("cast", [None, "float32"])
def case_custom_function(torch, cast):
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=None if cast is None else getattr(torch, cast))
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append(("forward", torch.is_autocast_enabled("cpu"), a.dtype))
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append(("backward", torch.is_autocast_enabled("cpu"), g.dtype))
            return g @ b.t(), a.t() @ g

    a = tensor(torch, (3, 3), seed=1, requires_grad=True)
    b = tensor(torch, (3, 3), seed=2, requires_grad=True)
    with torch.autocast("cpu"):
        out = Product.apply(a, b.bfloat16() if cast else b)
        loss = out.float().sum()
    loss.backward()
    plain = Product.apply(a, b)
    return seen, out, a.grad, b.grad, plain


@case
def case_mixed_halves(torch):
    a = tensor(torch, (3, 3), seed=1)
    out = []
    with torch.autocast("cpu"):
        out.append(raises(torch, lambda: torch.stack([a.half(), a.bfloat16()])))
        out.append(raises(torch, lambda: torch.cat([a.half(), a.half()])))
        out.append(torch.cat([a.double(), a]).dtype)
        out.append(torch.mm(a.double(), a.double()).dtype)
    return out


_ = capture
