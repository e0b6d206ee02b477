"""Which functions autocast casts, by device type and public name.

LOWER: operands to the lower precision. FLOAT32: operands to float32. PROMOTE: operands to the widest of theirs.
OPTIONAL: the first operand to float32, unless the caller asks for a dtype. BANNED: an error. CONTRACT: operands to the
lower precision if the call sums products, as for PyTorch it is then a bmm. RESULT: a function that ends in a product.
float64 is never cast. The tables follow PyTorch's op reference for autocast on CPU and CUDA."""

__all__ = ["BANNED", "CONTRACT", "FLOAT32", "LOWER", "OPTIONAL", "POLICIES", "PROMOTE", "RESULT", "UNWRAPPED"]

LOWER, FLOAT32, PROMOTE, OPTIONAL, BANNED = "lower", "float32", "promote", "optional", "banned"
CONTRACT, RESULT = "contract", "result"


def _table(**classes: str) -> dict[str, str]:
    return {name: policy for policy, text in classes.items() for name in text.split()}


CPU = _table(
    lower="""
        conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d mm bmm matmul linear addmm
        addbmm baddbmm vecdot prelu scaled_dot_product_attention
    """,
    float32="""
        avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d
        fractional_max_pool3d binary_cross_entropy binary_cross_entropy_with_logits grid_sample grid_sampler
        grid_sampler_2d grid_sampler_3d polar prod quantile nanquantile stft cdist trace view_as_complex
        cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse geqrf qr svd triangular_solve
        mse_loss l1_loss smooth_l1_loss huber_loss nll_loss nll_loss2d cross_entropy cross_entropy_loss ctc_loss kl_div
        poisson_nll_loss soft_margin_loss multi_margin_loss multilabel_margin_loss margin_ranking_loss
        hinge_embedding_loss cosine_embedding_loss triplet_margin_loss
        fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn
        fft.irfftn fft.hfft fft.ihfft linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh
        linalg.eigvals linalg.eigvalsh
        linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve
        linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve
        fake_quantize_per_tensor_affine
    """,
    promote="stack cat index_copy",
    result="cov corrcoef",
)

CUDA = _table(
    lower="""
        conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d prelu addmm addmv addr matmul
        einsum mm mv vecdot linear addbmm baddbmm bmm chain_matmul linalg.multi_dot lstm_cell gru_cell rnn_tanh_cell
        rnn_relu_cell lstm gru rnn_tanh rnn_relu scaled_dot_product_attention
    """,
    float32="""
        acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus rms_norm nuclear_norm
        cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss
        nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
        multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits
        dist pdist cdist renorm logsumexp interpolate upsample upsample_nearest upsample_bilinear
    """,
    optional="""
        prod cumprod cumsum sum norm linalg.vector_norm linalg.matrix_norm
    """,
    promote="""
        addcdiv addcmul atan2 bilinear cross dot vdot grid_sample grid_sampler index_put tensordot scatter_add
    """,
    banned="binary_cross_entropy",
)

POLICIES: dict[str, dict[str, str]] = {"cpu": CPU, "cuda": CUDA}

UNWRAPPED = {
    "cpu": _table(
        lower="inner _lstm_layer _rnn_layer _rnn_cell_",
        contract="_einsum _tensordot",
        float32="_pad_reflect _pad_replicate",
    ),
    "cuda": _table(float32="pow _pow_static _native_layer_norm _group_norm", optional="softmax log_softmax"),
}
"""Operators behind functions of another name: several of PyTorch's in one (einsum is a bmm there), and those that are
called too often to wrap the function."""
