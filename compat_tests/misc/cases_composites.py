"""Functions of torch without a family: copies of views, segments, fake quantisation, integer division, value errors."""

from compat_tests import case, grads, raises, tensor


@case()
def case_view_copies(torch):
    x = tensor(torch, (3, 4), "float32", 1, requires_grad=True)
    out = [
        grads(torch, f, x) for f in (
            torch.alias_copy, torch.t_copy, lambda x: torch.as_strided_copy(x, (2, 2), (1, 2)),
            lambda x: torch.diagonal_copy(x, 1), lambda x: torch.expand_copy(x, (2, 3, 4)),
            lambda x: torch.narrow_copy(x, 1, 1, 2), lambda x: torch.permute_copy(x, (1, 0)),
            lambda x: torch.select_copy(x, 0, 1), lambda x: torch.slice_copy(x, 1, 0, 4, 2),
            lambda x: torch.squeeze_copy(x[None]), lambda x: torch.transpose_copy(x, 0, 1),
            lambda x: torch.unfold_copy(x, 1, 2, 1), lambda x: torch.unsqueeze_copy(x, 0),
            lambda x: torch.view_copy(x, (2, 6)), lambda x: torch.split_copy(x, 2), lambda x: torch.unbind_copy(x),
            lambda x: torch.split_with_sizes_copy(x, (1, 2)),
        )
    ]  # fmt: skip
    y = torch.zeros(3)
    z = torch.alias_copy(y)
    z += 1
    a = torch.ones(2, 3)
    a.as_strided_((3, 2), (1, 3))
    b = torch.empty(4, 3)
    torch.t_copy(x.detach(), out=b)
    return out + [y, a, a.stride(), b, torch.as_strided_scatter(torch.zeros(3, 3), torch.ones(2, 2), (2, 2), (1, 2), 1)]


@case()
def case_meshgrid_orders(torch):
    a, b, c = torch.arange(3), torch.arange(2), torch.tensor(5)
    return [torch.meshgrid(*g, indexing=i) for i in ("ij", "xy") for g in ((a, b), (a, b, c), (a, c), (c, a))]


@case(rtol=1e-5, atol=1e-6)
@case.params("reduce", ["sum", "mean", "max", "min", "prod"])
def case_segment_reduce(torch, reduce):
    x = tensor(torch, (4, 3), "float32", 2, requires_grad=True)
    n = torch.tensor([2, 0, 2])
    rows = torch.tensor([[1, 2], [3, 0], [0, 3], [2, 1]])
    return [
        torch.segment_reduce(x.detach(), reduce, lengths=n),
        torch.segment_reduce(x.detach(), reduce, lengths=n, initial=3),
        grads(torch, lambda x: torch.segment_reduce(x, reduce, lengths=torch.tensor([1, 3])), x),
        torch.segment_reduce(x.detach(), reduce, offsets=torch.tensor([0, 1, 4])),
        torch.segment_reduce(x.detach(), reduce, lengths=rows, axis=1),
        torch.segment_reduce(x.detach(), reduce, lengths=torch.tensor([1, 1]), unsafe=True),
        raises(torch, lambda: torch.segment_reduce(x, reduce, lengths=torch.tensor([1]))),
        raises(torch, lambda: torch.segment_reduce(x, "median", lengths=n)),
        raises(torch, lambda: torch.segment_reduce(x, reduce)),
    ]  # fmt: skip


@case(rtol=1e-5, atol=1e-6)
def case_small_functions(torch):
    x = tensor(torch, (3, 4), "float32", 3, requires_grad=True)
    z = tensor(torch, (2, 2), "complex64", 4, requires_grad=True)
    points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    return [
        z.conj().resolve_conj(), z.conj().grad_fn.name(), torch.conj(x) is x, x.conj() is x,
        grads(torch, lambda z: torch.view_as_real(z.conj() * z), z),
        grads(torch, lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15), x),
        grads(
            torch,
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32), 0, 0, 9
            ),
            x,
        ),
        torch.histogramdd(points, 3), torch.histogramdd(points, [2, 3], density=True, weight=torch.arange(4.0)),
        torch.histogramdd(points, [torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.0, 2.0])]),
        torch.hash_tensor(torch.tensor([1.0, 2.0, 5.0])), torch.hash_tensor(torch.arange(6).view(2, 3), 1),
        torch.embedding_renorm_(torch.ones(4, 3) * 9, torch.tensor([1, 2]), 1.0, 2.0),
        torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride(),
        torch.cond(True, lambda a: a + 1, lambda a: a - 1, (torch.ones(1),)), torch.sym_max(3, 2.0), torch.sym_int(2.5),
        torch.threshold_(torch.arange(4.0), 1.5, 0.0), torch.cov(torch.ones(1, 3)),
        torch.corrcoef(torch.arange(3.0)[None]), torch.linalg.vander(torch.tensor([2.0, 3.0])),
        torch.linalg.vander(torch.tensor([[2, 3]]), N=4),
        raises(torch, lambda: torch.linalg.vander(torch.tensor([2.0]))),
        torch.ones(2, dtype=torch.bool).sum_to_size(()), torch.linalg.norm(torch.ones(0, 3), 2),
        torch.gradient(torch.arange(4.0), spacing=None, dim=None), torch.unique_consecutive(torch.ones(0, 3), dim=0),
        torch.gather(torch.ones(3), 0, torch.ones(0, dtype=torch.uint8)),
        torch.zeros(1).addbmm_(torch.ones(2, 3, 4), torch.ones(2, 4, 5)),
        torch.return_types.max is type(torch.ones(2).max(0)),
        grads(torch, lambda x, v: torch.fill(x, v), x, torch.tensor(2.0, requires_grad=True)),
        grads(
            torch,
            lambda x, v: x.index_fill(0, torch.tensor([1, 1, 2]), v),
            x,
            torch.tensor(2.0, requires_grad=True),
        ),
        grads(torch, lambda x: x.logcumsumexp(1), x), torch.tensor([0.5, 1.5]).polygamma_(2),
    ]  # fmt: skip


@case()
def case_integers_from_floats(torch):
    x = torch.tensor([-1.5, -300.7, 1e10, float("nan"), float("inf"), 257.0, -1e20, 1e20, 3e9, 5e18, -1e10])
    names = ("uint8", "int8", "int16", "int32", "int64")
    return [x.to(getattr(torch, n)) for n in names] + [x.half().int(), x.bfloat16().to(torch.uint8), x.double().byte()]


@case()
def case_reversed_subtraction(torch):
    x = torch.ones(2, requires_grad=True)
    return [
        (5 - x).grad_fn.name(), torch.rsub(x, 5).grad_fn.name(), torch.rsub(x, x).grad_fn.name(),
        (x - 5).grad_fn.name(), torch.rsub(torch.tensor([1, 2]), 3, alpha=2),
        raises(torch, lambda: torch.rsub(torch.tensor([1]), 3, alpha=2.5)),
    ]  # fmt: skip


@case()
def case_division_by_zero(torch):
    x, z = torch.tensor([1, 2, 3]), torch.tensor([1, 0, 1])
    calls = (
        lambda: x // z, lambda: x % z, lambda: x // 0, lambda: x % 0, lambda: torch.div(x, z, rounding_mode="trunc"),
        lambda: torch.div(x, z, rounding_mode="floor"), lambda: torch.fmod(x, z), lambda: torch.fmod(x, 0),
        lambda: 5 // z, lambda: torch.remainder(5, z), lambda: x.clone().floor_divide_(0),
        lambda: x.clone().remainder_(z),
    )  # fmt: skip
    return [raises(torch, call) for call in calls] + [
        x.float() // 0,
        torch.true_divide(x, 0),
        x // 2,
        7 % x,
        x[:0] // 0,
    ]


@case()
def case_values_out_of_range(torch):
    F = torch.nn.functional
    x, y = torch.arange(15.0).view(3, 5) / 7, torch.tensor([0, 5, 1])
    calls = (
        lambda: F.nll_loss(x, y), lambda: F.cross_entropy(x, y), lambda: F.cross_entropy(x, torch.tensor([0, -1, 1])),
        lambda: F.cross_entropy(x[0], torch.tensor(7)), lambda: F.cross_entropy(x, y, label_smoothing=0.1),
        lambda: F.cross_entropy(torch.zeros(2, 5, 3), torch.tensor([[0, 1, 2], [3, 9, 1]])),
        lambda: F.binary_cross_entropy(torch.tensor([1.5, 0.2]), torch.tensor([1.0, 0.0])),
        lambda: F.binary_cross_entropy(torch.tensor([float("nan"), 0.2]), torch.tensor([1.0, 0.0])),
        lambda: F.binary_cross_entropy(torch.tensor([0.5, 0.2]), torch.tensor([2.0, 0.0])),
        lambda: F.multi_margin_loss(x, y), lambda: F.multilabel_margin_loss(x, torch.full((3, 5), 7)),
    )  # fmt: skip
    return [raises(torch, call) for call in calls] + [F.cross_entropy(x, torch.tensor([0, -100, 1]))]


@case(rtol=1e-5, atol=1e-6)
def case_masked(torch):
    m = torch.masked
    x = tensor(torch, (3, 4), "float32", 5, requires_grad=True)
    keep = torch.tensor([True, False, True, True])
    functions = ("sum", "prod", "mean", "amax", "amin", "var", "std", "norm", "logsumexp")
    out = [grads(torch, lambda x, f=f: getattr(m, f)(x, dim=1, mask=keep), x) for f in functions]
    out += [
        getattr(m, f)(x.detach(), 1, mask=keep).masked_fill(~keep, 0)
        for f in ("softmax", "softmin", "cumsum", "cumprod")
    ]
    return out + [
        m.argmax(x.detach(), 1, mask=keep), m.median(x.detach(), 1, mask=keep),
        m.normalize(x.detach(), 2.0, 1, mask=keep)[:, keep], m.sum(x.detach(), mask=keep),
        m.var(x.detach(), 1, correction=0, mask=keep),
    ]  # fmt: skip


@case()
def case_backends_and_cuda(torch):
    b = torch.backends
    before = b.cudnn.benchmark
    b.cudnn.benchmark = True
    with b.cudnn.flags(enabled=False):
        inside = b.cudnn.enabled
    b.cudnn.benchmark = before
    b.cuda.matmul.allow_tf32 = True
    precision = torch.get_float32_matmul_precision()
    b.cuda.matmul.allow_tf32 = False
    return [
        inside, b.cudnn.enabled, precision, torch.get_float32_matmul_precision(), b.cuda.flash_sdp_enabled(),
        b.cuda.is_built(), torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized(),
        torch.cuda.memory_allocated(), torch.cuda.get_arch_list(), torch.cuda.get_rng_state_all(),
        torch.cuda.is_bf16_supported(), raises(torch, torch.cuda.current_device), raises(torch, torch.cuda.init),
        raises(torch, torch.cuda.Stream), raises(torch, torch.cuda.current_stream),
        raises(torch, lambda: torch.cuda.FloatTensor(2)), raises(torch, torch.cuda.get_device_properties),
        raises(torch, lambda: torch.cuda.nvtx.range_push("a")), issubclass(torch.cuda.OutOfMemoryError, RuntimeError),
        str(torch.per_tensor_affine),
    ]  # fmt: skip
