"""Every layer: its repr, attributes, parameters, output, gradients, state and errors."""

from typing import Any

from compat_tests import case
from compat_tests.nn.running import run_layer

LINEAR = [
    ("nn.Linear(6,5)", ("x(4,6)",)),
    ("nn.Linear(6,5,bias=False,dtype=torch.float64)", ("x(4,6).double()",)),
    ("nn.Linear(0,5)", ()),
    ("nn.Bilinear(6,6,3)", ("x(4,6)", "x(4,6)")),
    ("nn.Identity(3,a=2)", ("x(4,6)",)),
    ("nn.LazyLinear(5)", ("x(4,6)",)),
    ("nn.Bilinear(0,6,3)", ()),
]


CONVOLUTION = [
    ("nn.Conv1d(4,6,3)", ("x(2,4,7)",)),
    ("nn.Conv1d(4,6,3,2,1,groups=2,bias=False)", ("x(2,4,7)",)),
    ("nn.Conv1d(4,4,3,padding='same',dilation=2,padding_mode='circular')", ("x(2,4,7)",)),
    ("nn.Conv1d(4,4,2,padding='same',padding_mode='reflect')", ("x(2,4,7)",)),
    ("nn.Conv1d(4,4,3,padding=1,padding_mode='replicate')", ("x(2,4,7)",)),
    ("nn.Conv1d(4,4,3,padding='valid')", ("x(2,4,7)",)),
    ("nn.Conv1d(4,4,3,groups=3)", ()),
    ("nn.Conv1d(4,6,3,groups=4)", ()),
    ("nn.Conv1d(4,6,3,groups=0)", ()),
    ("nn.Conv1d(4,4,3,2,padding='same')", ()),
    ("nn.LazyConv1d(6,3)", ("x(2,4,7)",)),
    ("nn.LazyConv1d(6,3,groups=3)", ("x(2,4,7)",)),
    ("nn.LazyConv1d(6,3)", ("x(3)",)),
    ("nn.Conv2d(4,6,3)", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,6,3,2,1,groups=2,bias=False)", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,4,3,padding='same',dilation=2,padding_mode='circular')", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,4,2,padding='same',padding_mode='reflect')", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,4,3,padding=1,padding_mode='replicate')", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,4,3,padding='valid')", ("x(2,4,6,6)",)),
    ("nn.Conv2d(4,4,3,groups=3)", ()),
    ("nn.Conv2d(4,6,3,groups=4)", ()),
    ("nn.Conv2d(4,6,3,groups=0)", ()),
    ("nn.Conv2d(4,4,3,2,padding='same')", ()),
    ("nn.LazyConv2d(6,3)", ("x(2,4,6,6)",)),
    ("nn.LazyConv2d(6,3,groups=3)", ("x(2,4,6,6)",)),
    ("nn.LazyConv2d(6,3)", ("x(3)",)),
    ("nn.Conv3d(4,6,3)", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,6,3,2,1,groups=2,bias=False)", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,4,3,padding='same',dilation=2,padding_mode='circular')", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,4,2,padding='same',padding_mode='reflect')", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,4,3,padding=1,padding_mode='replicate')", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,4,3,padding='valid')", ("x(2,4,5,5,5)",)),
    ("nn.Conv3d(4,4,3,groups=3)", ()),
    ("nn.Conv3d(4,6,3,groups=4)", ()),
    ("nn.Conv3d(4,6,3,groups=0)", ()),
    ("nn.Conv3d(4,4,3,2,padding='same')", ()),
    ("nn.LazyConv3d(6,3)", ("x(2,4,5,5,5)",)),
    ("nn.LazyConv3d(6,3,groups=3)", ("x(2,4,5,5,5)",)),
    ("nn.LazyConv3d(6,3)", ("x(3)",)),
]


TRANSPOSED_CONVOLUTION = [
    ("nn.ConvTranspose1d(4,6,3)", ("x(2,4,7)",)),
    ("nn.ConvTranspose1d(4,6,3,2,1,1,groups=2)", ("x(2,4,7)",)),
    ("nn.ConvTranspose1d(4,6,3,padding_mode='reflect')", ()),
    ("nn.ConvTranspose1d(4,6,3,2)", ("x(2,4,7)", "[16]")),
    ("nn.ConvTranspose1d(4,6,3,2)", ("x(2,4,7)", "[160]")),
    ("nn.ConvTranspose1d(4,6,3,2)", ("x(2,4,7)", "[1]*7")),
    ("nn.LazyConvTranspose1d(6,3,bias=False)", ("x(2,4,7)",)),
    ("nn.ConvTranspose2d(4,6,3)", ("x(2,4,6,6)",)),
    ("nn.ConvTranspose2d(4,6,3,2,1,1,groups=2)", ("x(2,4,6,6)",)),
    ("nn.ConvTranspose2d(4,6,3,padding_mode='reflect')", ()),
    ("nn.ConvTranspose2d(4,6,3,2)", ("x(2,4,6,6)", "[16, 16]")),
    ("nn.ConvTranspose2d(4,6,3,2)", ("x(2,4,6,6)", "[160, 160]")),
    ("nn.ConvTranspose2d(4,6,3,2)", ("x(2,4,6,6)", "[1]*7")),
    ("nn.LazyConvTranspose2d(6,3,bias=False)", ("x(2,4,6,6)",)),
    ("nn.ConvTranspose3d(4,6,3)", ("x(2,4,5,5,5)",)),
    ("nn.ConvTranspose3d(4,6,3,2,1,1,groups=2)", ("x(2,4,5,5,5)",)),
    ("nn.ConvTranspose3d(4,6,3,padding_mode='reflect')", ()),
    ("nn.ConvTranspose3d(4,6,3,2)", ("x(2,4,5,5,5)", "[16, 16, 16]")),
    ("nn.ConvTranspose3d(4,6,3,2)", ("x(2,4,5,5,5)", "[160, 160, 160]")),
    ("nn.ConvTranspose3d(4,6,3,2)", ("x(2,4,5,5,5)", "[1]*7")),
    ("nn.LazyConvTranspose3d(6,3,bias=False)", ("x(2,4,5,5,5)",)),
]


NORMALIZATION = [
    ("nn.BatchNorm1d(4)", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4,momentum=None)", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4,affine=False,track_running_stats=False)", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4,bias=False)", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4)", ("x(4)",)),
    ("nn.LazyBatchNorm1d()", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4).eval()", ("x(2,4,7)",)),
    ("nn.BatchNorm1d(4,track_running_stats=False).eval()", ("x(2,4,7)",)),
    ("nn.InstanceNorm1d(4)", ("x(2,4,7)",)),
    ("nn.InstanceNorm1d(4)", ("x(2,4,7)[0]",)),
    ("nn.InstanceNorm1d(4,affine=True,track_running_stats=True)", ("x(2,4,7)",)),
    ("nn.InstanceNorm1d(5,affine=True)", ("x(2,4,7)",)),
    ("nn.InstanceNorm1d(5)", ("x(2,4,7)",)),
    ("nn.InstanceNorm1d(4)", ("x(4)",)),
    ("nn.LazyInstanceNorm1d(affine=True)", ("x(2,4,7)",)),
    ("nn.BatchNorm2d(4)", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4,momentum=None)", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4,affine=False,track_running_stats=False)", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4,bias=False)", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4)", ("x(4)",)),
    ("nn.LazyBatchNorm2d()", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4).eval()", ("x(2,4,6,6)",)),
    ("nn.BatchNorm2d(4,track_running_stats=False).eval()", ("x(2,4,6,6)",)),
    ("nn.InstanceNorm2d(4)", ("x(2,4,6,6)",)),
    ("nn.InstanceNorm2d(4)", ("x(2,4,6,6)[0]",)),
    ("nn.InstanceNorm2d(4,affine=True,track_running_stats=True)", ("x(2,4,6,6)",)),
    ("nn.InstanceNorm2d(5,affine=True)", ("x(2,4,6,6)",)),
    ("nn.InstanceNorm2d(5)", ("x(2,4,6,6)",)),
    ("nn.InstanceNorm2d(4)", ("x(4)",)),
    ("nn.LazyInstanceNorm2d(affine=True)", ("x(2,4,6,6)",)),
    ("nn.BatchNorm3d(4)", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4,momentum=None)", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4,affine=False,track_running_stats=False)", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4,bias=False)", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4)", ("x(4)",)),
    ("nn.LazyBatchNorm3d()", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4).eval()", ("x(2,4,5,5,5)",)),
    ("nn.BatchNorm3d(4,track_running_stats=False).eval()", ("x(2,4,5,5,5)",)),
    ("nn.InstanceNorm3d(4)", ("x(2,4,5,5,5)",)),
    ("nn.InstanceNorm3d(4)", ("x(2,4,5,5,5)[0]",)),
    ("nn.InstanceNorm3d(4,affine=True,track_running_stats=True)", ("x(2,4,5,5,5)",)),
    ("nn.InstanceNorm3d(5,affine=True)", ("x(2,4,5,5,5)",)),
    ("nn.InstanceNorm3d(5)", ("x(2,4,5,5,5)",)),
    ("nn.InstanceNorm3d(4)", ("x(4)",)),
    ("nn.LazyInstanceNorm3d(affine=True)", ("x(2,4,5,5,5)",)),
    ("nn.SyncBatchNorm(4)", ("x(2,4,6,6)",)),
    ("nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(4),nn.ReLU()))", ("x(2,4,6,6)",)),
    ("nn.LayerNorm(6)", ("x(4,6)",)),
    ("nn.LayerNorm((4,6),elementwise_affine=False)", ("x(4,6)",)),
    ("nn.LayerNorm(6,bias=False)", ("x(4,6)",)),
    ("nn.GroupNorm(2,4)", ("x(2,4,6,6)",)),
    ("nn.GroupNorm(3,4)", ()),
    ("nn.GroupNorm(2,4,affine=False)", ("x(2,4,6,6)",)),
    ("nn.GroupNorm(2,4,bias=False)", ("x(2,4,6,6)",)),
    ("nn.RMSNorm(6)", ("x(4,6)",)),
    ("nn.RMSNorm((6,),eps=1e-3,elementwise_affine=False)", ("x(4,6)",)),
    ("nn.LocalResponseNorm(2)", ("x(2,4,6,6)",)),
    ("nn.CrossMapLRN2d(3)", ("x(4,6)",)),
    ("nn.CrossMapLRN2d(5)", ("x(2,2,3,3)",)),
]


POOLING = [
    ("nn.MaxPool1d(2)", ("x(2,4,7)",)),
    ("nn.MaxPool1d(3,2,1,1,True,True)", ("x(2,4,7)",)),
    ("nn.AvgPool1d(2)", ("x(2,4,7)",)),
    ("nn.AvgPool1d(3,2,1,True,False)", ("x(2,4,7)",)),
    ("nn.LPPool1d(2,2)", ("p(2,4,7)",)),
    ("nn.AdaptiveAvgPool1d(2)", ("x(2,4,7)",)),
    ("nn.AdaptiveMaxPool1d(2,True)", ("x(2,4,7)",)),
    (
        "nn.MaxUnpool1d(2)",
        ("F.max_pool1d(x(2,4,7),2)", "F.max_pool1d(torch.randn(x(2,4,7).shape),2,return_indices=True)[1]"),
    ),
    ("nn.MaxPool2d(2)", ("x(2,4,6,6)",)),
    ("nn.MaxPool2d(3,2,1,1,True,True)", ("x(2,4,6,6)",)),
    ("nn.AvgPool2d(2)", ("x(2,4,6,6)",)),
    ("nn.AvgPool2d(3,2,1,True,False)", ("x(2,4,6,6)",)),
    ("nn.LPPool2d(2,2)", ("p(2,4,8,8)",)),
    ("nn.AdaptiveAvgPool2d(2)", ("x(2,4,6,6)",)),
    ("nn.AdaptiveMaxPool2d(2,True)", ("x(2,4,6,6)",)),
    (
        "nn.MaxUnpool2d(2)",
        ("F.max_pool2d(x(2,4,6,6),2)", "F.max_pool2d(torch.randn(x(2,4,6,6).shape),2,return_indices=True)[1]"),
    ),
    ("nn.MaxPool3d(2)", ("x(2,4,5,5,5)",)),
    ("nn.MaxPool3d(3,2,1,1,True,True)", ("x(2,4,5,5,5)",)),
    ("nn.AvgPool3d(2)", ("x(2,4,5,5,5)",)),
    ("nn.AvgPool3d(3,2,1,True,False)", ("x(2,4,5,5,5)",)),
    ("nn.LPPool3d(2,2)", ("p(2,4,5,5,5)",)),
    ("nn.AdaptiveAvgPool3d(2)", ("x(2,4,5,5,5)",)),
    ("nn.AdaptiveMaxPool3d(2,True)", ("x(2,4,5,5,5)",)),
    (
        "nn.MaxUnpool3d(2)",
        ("F.max_pool3d(x(2,4,4,4,4),2)", "F.max_pool3d(x(2,4,4,4,4),2,return_indices=True)[1]"),
    ),
]


FRACTIONAL_POOLING = [
    ("nn.FractionalMaxPool2d(2,output_size=3)", ("x(2,4,6,6)",)),
    ("nn.FractionalMaxPool2d(2,output_ratio=(0.5,0.5),return_indices=True)", ("x(2,4,6,6)",)),
    ("nn.FractionalMaxPool3d(2,output_ratio=0.5)", ("x(2,4,5,5,5)",)),
    ("nn.FractionalMaxPool3d(0,output_ratio=0.5)", ()),
    ("nn.FractionalMaxPool3d(2)", ()),
    ("nn.FractionalMaxPool2d(2)", ()),
    ("nn.FractionalMaxPool2d(2,3,0.5)", ()),
    ("nn.FractionalMaxPool2d(2,output_ratio=1.5)", ()),
]


PADDING = [
    ("nn.CircularPad1d(1)", ("x(2,4,7)",)),
    ("nn.CircularPad1d((1, 0))", ("x(2,4,7)",)),
    ("nn.CircularPad1d(1)", ("x(3)",)),
    ("nn.ReflectionPad1d(1)", ("x(2,4,7)",)),
    ("nn.ReflectionPad1d((1, 0))", ("x(2,4,7)",)),
    ("nn.ReflectionPad1d(1)", ("x(3)",)),
    ("nn.ReplicationPad1d(1)", ("x(2,4,7)",)),
    ("nn.ReplicationPad1d((1, 0))", ("x(2,4,7)",)),
    ("nn.ReplicationPad1d(1)", ("x(3)",)),
    ("nn.ZeroPad1d(1)", ("x(2,4,7)",)),
    ("nn.ZeroPad1d((1, 0))", ("x(2,4,7)",)),
    ("nn.ZeroPad1d(1)", ("x(3)",)),
    ("nn.ConstantPad1d(1,3.5)", ("x(2,4,7)",)),
    ("nn.CircularPad2d(1)", ("x(2,4,6,6)",)),
    ("nn.CircularPad2d((1, 0, 1, 0))", ("x(2,4,6,6)",)),
    ("nn.CircularPad2d(1)", ("x(3)",)),
    ("nn.ReflectionPad2d(1)", ("x(2,4,6,6)",)),
    ("nn.ReflectionPad2d((1, 0, 1, 0))", ("x(2,4,6,6)",)),
    ("nn.ReflectionPad2d(1)", ("x(3)",)),
    ("nn.ReplicationPad2d(1)", ("x(2,4,6,6)",)),
    ("nn.ReplicationPad2d((1, 0, 1, 0))", ("x(2,4,6,6)",)),
    ("nn.ReplicationPad2d(1)", ("x(3)",)),
    ("nn.ZeroPad2d(1)", ("x(2,4,6,6)",)),
    ("nn.ZeroPad2d((1, 0, 1, 0))", ("x(2,4,6,6)",)),
    ("nn.ZeroPad2d(1)", ("x(3)",)),
    ("nn.ConstantPad2d(1,3.5)", ("x(2,4,6,6)",)),
    ("nn.CircularPad3d(1)", ("x(2,4,5,5,5)",)),
    ("nn.CircularPad3d((1, 0, 1, 0, 1, 0))", ("x(2,4,5,5,5)",)),
    ("nn.CircularPad3d(1)", ("x(3)",)),
    ("nn.ReflectionPad3d(1)", ("x(2,4,5,5,5)",)),
    ("nn.ReflectionPad3d((1, 0, 1, 0, 1, 0))", ("x(2,4,5,5,5)",)),
    ("nn.ReflectionPad3d(1)", ("x(3)",)),
    ("nn.ReplicationPad3d(1)", ("x(2,4,5,5,5)",)),
    ("nn.ReplicationPad3d((1, 0, 1, 0, 1, 0))", ("x(2,4,5,5,5)",)),
    ("nn.ReplicationPad3d(1)", ("x(3)",)),
    ("nn.ZeroPad3d(1)", ("x(2,4,5,5,5)",)),
    ("nn.ZeroPad3d((1, 0, 1, 0, 1, 0))", ("x(2,4,5,5,5)",)),
    ("nn.ZeroPad3d(1)", ("x(3)",)),
    ("nn.ConstantPad3d(1,3.5)", ("x(2,4,5,5,5)",)),
]


DROPOUT = [
    ("nn.Dropout1d(0.3)", ("x(2,4,7)",)),
    ("nn.Dropout1d(1.3)", ()),
    ("nn.Dropout2d(0.3)", ("x(2,4,6,6)",)),
    ("nn.Dropout2d(1.3)", ()),
    ("nn.Dropout3d(0.3)", ("x(2,4,5,5,5)",)),
    ("nn.Dropout3d(1.3)", ()),
    ("nn.Dropout()", ("x(4,6)",)),
    ("nn.Dropout(0.2,True)", ("x(4,6)",)),
    ("nn.Dropout(-1)", ()),
    ("nn.AlphaDropout(0.2)", ("x(4,6)",)),
    ("nn.FeatureAlphaDropout(0.2)", ("x(2,4,6,6)",)),
    ("nn.Dropout().eval()", ("x(4,6)",)),
]


EMBEDDING = [
    ("nn.Embedding(10,3)", ("torch.tensor([0,2,1,5])",)),
    (
        "nn.Embedding(10,3,padding_idx=-1,max_norm=1.,norm_type=1.,scale_grad_by_freq=True,sparse=False)",
        ("torch.tensor([0,2,1,5])",),
    ),
    ("nn.Embedding(10,3,padding_idx=10)", ()),
    ("nn.Embedding(10,3,padding_idx=-11)", ()),
    ("nn.Embedding.from_pretrained(torch.ones(6,2))", ("torch.tensor([0,2,1,5])",)),
    ("nn.Embedding.from_pretrained(torch.ones(6))", ()),
    ("nn.Embedding(3,3,_weight=torch.ones(2,2))", ()),
    ("nn.Embedding(3,3,_freeze=True)", ()),
    ("nn.EmbeddingBag(10,3)", ("torch.tensor([[0,1],[2,3]])",)),
    ("nn.EmbeddingBag(10,3,mode='sum',padding_idx=1,max_norm=2.)", ("torch.tensor([0,2,1,5])", "torch.tensor([0,2])")),
    (
        "nn.EmbeddingBag.from_pretrained(torch.ones(6,2),freeze=False)",
        ("torch.tensor([0,2,1,5])", "torch.tensor([0,2])"),
    ),
]


CONTAINER = [
    ("nn.Sequential(nn.Linear(6,3),nn.ReLU())", ("x(4,6)",)),
    ("nn.ModuleList([nn.Linear(2,2)]*3+[nn.ReLU(),nn.Linear(2,2)])", ("x(4,6)",)),
    ("nn.ModuleDict({'a':nn.Linear(2,2),'b':nn.ReLU()})", ("x(4,6)",)),
    ("nn.ParameterList([nn.Parameter(torch.ones(2,3)),torch.ones(2),'x',nn.Parameter(torch.ones(()))])", ()),
    ("nn.ParameterDict({'a':nn.Parameter(torch.ones(2,3)),'c':torch.ones(2),'b':'x'})", ()),
    ("nn.Container(a=nn.ReLU())", ()),
]


ACTIVATION = [
    ("nn.ReLU()", ("x(4,6)",)),
    ("nn.ReLU(True)", ("x(4,6)",)),
    ("nn.ReLU(inplace=True)", ("x(4,6)",)),
    ("nn.ReLU6()", ("x(4,6)",)),
    ("nn.ReLU6(True)", ("x(4,6)",)),
    ("nn.ReLU6(inplace=True)", ("x(4,6)",)),
    ("nn.SiLU()", ("x(4,6)",)),
    ("nn.SiLU(True)", ("x(4,6)",)),
    ("nn.SiLU(inplace=True)", ("x(4,6)",)),
    ("nn.Mish()", ("x(4,6)",)),
    ("nn.Mish(True)", ("x(4,6)",)),
    ("nn.Mish(inplace=True)", ("x(4,6)",)),
    ("nn.SELU()", ("x(4,6)",)),
    ("nn.SELU(True)", ("x(4,6)",)),
    ("nn.SELU(inplace=True)", ("x(4,6)",)),
    ("nn.Hardsigmoid()", ("x(4,6)",)),
    ("nn.Hardsigmoid(True)", ("x(4,6)",)),
    ("nn.Hardsigmoid(inplace=True)", ("x(4,6)",)),
    ("nn.Hardswish()", ("x(4,6)",)),
    ("nn.Hardswish(True)", ("x(4,6)",)),
    ("nn.Hardswish(inplace=True)", ("x(4,6)",)),
    ("nn.Sigmoid()", ("x(4,6)",)),
    ("nn.Sigmoid(True)", ()),
    ("nn.Tanh()", ("x(4,6)",)),
    ("nn.Tanh(True)", ()),
    ("nn.LogSigmoid()", ("x(4,6)",)),
    ("nn.LogSigmoid(True)", ()),
    ("nn.Softsign()", ("x(4,6)",)),
    ("nn.Softsign(True)", ()),
    ("nn.Tanhshrink()", ("x(4,6)",)),
    ("nn.Tanhshrink(True)", ()),
    ("nn.ELU()", ("x(4,6)",)),
    ("nn.ELU(0.3,True)", ("x(4,6)",)),
    ("nn.CELU()", ("x(4,6)",)),
    ("nn.CELU(0.3,True)", ("x(4,6)",)),
    ("nn.LeakyReLU()", ("x(4,6)",)),
    ("nn.LeakyReLU(0.3,True)", ("x(4,6)",)),
    ("nn.Hardshrink()", ("x(4,6)",)),
    ("nn.Hardshrink(0.3)", ("x(4,6)",)),
    ("nn.Softshrink()", ("x(4,6)",)),
    ("nn.Softshrink(0.3)", ("x(4,6)",)),
    ("nn.Threshold(0.1,2)", ("x(4,6)",)),
    ("nn.Threshold(0.1,2,True)", ("x(4,6)",)),
    ("nn.RReLU()", ("x(4,6)",)),
    ("nn.RReLU(0.1,0.2,True).eval()", ("x(4,6)",)),
    ("nn.Hardtanh()", ("x(4,6)",)),
    ("nn.Hardtanh(-2,2,True)", ("x(4,6)",)),
    ("nn.Hardtanh(2,-2)", ()),
    ("nn.Hardtanh(min_value=-3,max_value=3)", ("x(4,6)",)),
    ("nn.GLU()", ("x(4,6)",)),
    ("nn.GLU(0)", ("x(4,6)",)),
    ("nn.GELU()", ("x(4,6)",)),
    ("nn.GELU('tanh')", ("x(4,6)",)),
    ("nn.GELU('x')", ("x(4,6)",)),
    ("nn.Softplus(2,3)", ("x(4,6)",)),
    ("nn.PReLU()", ("x(4,6)",)),
    ("nn.PReLU(6,0.1)", ("x(4,6)",)),
    ("nn.Softmin(1)", ("x(4,6)",)),
    ("nn.Softmin()", ("x(4,6)",)),
    ("nn.Softmin(dim=-1)", ("x(2,4,7)",)),
    ("nn.Softmax(1)", ("x(4,6)",)),
    ("nn.Softmax()", ("x(4,6)",)),
    ("nn.Softmax(dim=-1)", ("x(2,4,7)",)),
    ("nn.LogSoftmax(1)", ("x(4,6)",)),
    ("nn.LogSoftmax()", ("x(4,6)",)),
    ("nn.LogSoftmax(dim=-1)", ("x(2,4,7)",)),
    ("nn.Softmax2d()", ("x(2,4,6,6)",)),
    ("nn.Softmax2d()", ("x(4,6)",)),
]


LOSS = [
    ("nn.L1Loss()", ("x(4,6)", "x(4,6)")),
    ("nn.MSELoss()", ("x(4,6)", "x(4,6)")),
    ("nn.SmoothL1Loss()", ("x(4,6)", "x(4,6)")),
    ("nn.HuberLoss()", ("x(4,6)", "x(4,6)")),
    ("nn.NLLLoss()", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CrossEntropyLoss()", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.PoissonNLLLoss()", ("x(4,6)", "p(4,6)")),
    ("nn.GaussianNLLLoss()", ("x(4,6)", "x(4,6)", "p(4,6)")),
    ("nn.KLDivLoss()", ("x(4,6)", "torch.softmax(x(4,6),1)")),
    ("nn.BCELoss()", ("p(4,6)", "p(4,6)")),
    ("nn.BCEWithLogitsLoss()", ("x(4,6)", "p(4,6)")),
    ("nn.HingeEmbeddingLoss()", ("x(4,6)", "s(4,6)")),
    ("nn.SoftMarginLoss()", ("x(4,6)", "s(4,6)")),
    ("nn.MultiLabelMarginLoss()", ("x(4,6)", "torch.tensor([[1, 2, -1, 0, 0, 0]] * 4)")),
    ("nn.MultiLabelSoftMarginLoss()", ("x(4,6)", "(x(4,6)>0).float()")),
    ("nn.MultiMarginLoss()", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CosineEmbeddingLoss()", ("x(4,6)", "x(4,6)", "torch.tensor([1,-1,1,-1])")),
    ("nn.MarginRankingLoss()", ("x(4,6)", "x(4,6)", "s(4,6)")),
    ("nn.TripletMarginLoss()", ("x(4,6)", "x(4,6)", "x(4,6)")),
    ("nn.TripletMarginWithDistanceLoss()", ("x(4,6)", "x(4,6)", "x(4,6)")),
    (
        "nn.CTCLoss()",
        ("x(9,2,5).log_softmax(2)", "torch.tensor([[1,2,3],[1,1,4]])", "torch.tensor([9,8])", "torch.tensor([3,2])"),
    ),
    ("nn.L1Loss(reduction='sum')", ("x(4,6)", "x(4,6)")),
    ("nn.MSELoss(reduction='sum')", ("x(4,6)", "x(4,6)")),
    ("nn.SmoothL1Loss(reduction='sum')", ("x(4,6)", "x(4,6)")),
    ("nn.HuberLoss(reduction='sum')", ("x(4,6)", "x(4,6)")),
    ("nn.NLLLoss(reduction='sum')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CrossEntropyLoss(reduction='sum')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.PoissonNLLLoss(reduction='sum')", ("x(4,6)", "p(4,6)")),
    ("nn.GaussianNLLLoss(reduction='sum')", ("x(4,6)", "x(4,6)", "p(4,6)")),
    ("nn.KLDivLoss(reduction='sum')", ("x(4,6)", "torch.softmax(x(4,6),1)")),
    ("nn.BCELoss(reduction='sum')", ("p(4,6)", "p(4,6)")),
    ("nn.BCEWithLogitsLoss(reduction='sum')", ("x(4,6)", "p(4,6)")),
    ("nn.HingeEmbeddingLoss(reduction='sum')", ("x(4,6)", "s(4,6)")),
    ("nn.SoftMarginLoss(reduction='sum')", ("x(4,6)", "s(4,6)")),
    ("nn.MultiLabelMarginLoss(reduction='sum')", ("x(4,6)", "torch.tensor([[1, 2, -1, 0, 0, 0]] * 4)")),
    ("nn.MultiLabelSoftMarginLoss(reduction='sum')", ("x(4,6)", "(x(4,6)>0).float()")),
    ("nn.MultiMarginLoss(reduction='sum')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CosineEmbeddingLoss(reduction='sum')", ("x(4,6)", "x(4,6)", "torch.tensor([1,-1,1,-1])")),
    ("nn.MarginRankingLoss(reduction='sum')", ("x(4,6)", "x(4,6)", "s(4,6)")),
    ("nn.TripletMarginLoss(reduction='sum')", ("x(4,6)", "x(4,6)", "x(4,6)")),
    ("nn.TripletMarginWithDistanceLoss(reduction='sum')", ("x(4,6)", "x(4,6)", "x(4,6)")),
    (
        "nn.CTCLoss(reduction='sum')",
        ("x(9,2,5).log_softmax(2)", "torch.tensor([[1,2,3],[1,1,4]])", "torch.tensor([9,8])", "torch.tensor([3,2])"),
    ),
    ("nn.L1Loss(reduction='none')", ("x(4,6)", "x(4,6)")),
    ("nn.MSELoss(reduction='none')", ("x(4,6)", "x(4,6)")),
    ("nn.SmoothL1Loss(reduction='none')", ("x(4,6)", "x(4,6)")),
    ("nn.HuberLoss(reduction='none')", ("x(4,6)", "x(4,6)")),
    ("nn.NLLLoss(reduction='none')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CrossEntropyLoss(reduction='none')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.PoissonNLLLoss(reduction='none')", ("x(4,6)", "p(4,6)")),
    ("nn.GaussianNLLLoss(reduction='none')", ("x(4,6)", "x(4,6)", "p(4,6)")),
    ("nn.KLDivLoss(reduction='none')", ("x(4,6)", "torch.softmax(x(4,6),1)")),
    ("nn.BCELoss(reduction='none')", ("p(4,6)", "p(4,6)")),
    ("nn.BCEWithLogitsLoss(reduction='none')", ("x(4,6)", "p(4,6)")),
    ("nn.HingeEmbeddingLoss(reduction='none')", ("x(4,6)", "s(4,6)")),
    ("nn.SoftMarginLoss(reduction='none')", ("x(4,6)", "s(4,6)")),
    ("nn.MultiLabelMarginLoss(reduction='none')", ("x(4,6)", "torch.tensor([[1, 2, -1, 0, 0, 0]] * 4)")),
    ("nn.MultiLabelSoftMarginLoss(reduction='none')", ("x(4,6)", "(x(4,6)>0).float()")),
    ("nn.MultiMarginLoss(reduction='none')", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.CosineEmbeddingLoss(reduction='none')", ("x(4,6)", "x(4,6)", "torch.tensor([1,-1,1,-1])")),
    ("nn.MarginRankingLoss(reduction='none')", ("x(4,6)", "x(4,6)", "s(4,6)")),
    ("nn.TripletMarginLoss(reduction='none')", ("x(4,6)", "x(4,6)", "x(4,6)")),
    ("nn.TripletMarginWithDistanceLoss(reduction='none')", ("x(4,6)", "x(4,6)", "x(4,6)")),
    (
        "nn.CTCLoss(reduction='none')",
        ("x(9,2,5).log_softmax(2)", "torch.tensor([[1,2,3],[1,1,4]])", "torch.tensor([9,8])", "torch.tensor([3,2])"),
    ),
    ("nn.CrossEntropyLoss(p(6),ignore_index=1,label_smoothing=0.1)", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.NLLLoss2d()", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.L1Loss(size_average=False)", ("x(4,6)", "x(4,6)")),
    ("nn.L1Loss(reduce=False)", ("x(4,6)", "x(4,6)")),
    ("nn.BCEWithLogitsLoss(p(6),pos_weight=p(6))", ("x(4,6)", "p(4,6)")),
    ("nn.MultiMarginLoss(3)", ()),
    ("nn.MultiMarginLoss(2,0.5,p(6))", ("x(4,6)", "torch.tensor([0,2,1,5])")),
    ("nn.MultiMarginLoss(weight=p(2,2))", ()),
    ("nn.TripletMarginLoss(0)", ()),
    ("nn.TripletMarginWithDistanceLoss(margin=0)", ()),
    ("nn.HuberLoss(delta='a')", ()),
    ("nn.KLDivLoss(log_target=True,reduction='batchmean')", ("x(4,6)", "x(4,6)")),
    ("nn.PoissonNLLLoss(False,True)", ("p(4,6)", "p(4,6)")),
    ("nn.SmoothL1Loss(beta=0.5)", ("x(4,6)", "x(4,6)")),
    ("nn.TripletMarginLoss(2.,1.,swap=True)", ("x(4,6)", "x(4,6)", "x(4,6)")),
    (
        "nn.CTCLoss(1,zero_infinity=True)",
        ("x(9,2,5).log_softmax(2)", "torch.tensor([[0,2,3],[0,0,4]])", "torch.tensor([9,2])", "torch.tensor([3,2])"),
    ),
    ("nn.L1Loss(reduction='foo')", ("x(4,6)", "x(4,6)")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5,10],div_value=2.)", ("x(4,6)", "torch.tensor([0,7,15,19])")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5,10],head_bias=True)", ("x(4,6)", "torch.tensor([0,7,15,20])")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[])", ()),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5,5])", ()),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5])", ("x(4,6)", "torch.tensor([0,2,1,5])[:3]")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5])", ("x(6)", "torch.tensor(7)")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5])", ("x(4,6)", "torch.ones(2,2)")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5])", ("x(4,6)", "torch.tensor(1)")),
    ("nn.AdaptiveLogSoftmaxWithLoss(6,20,[5])", ("x(4)", "torch.tensor([0,2,1,5])")),
]


SHAPE = [
    ("nn.CosineSimilarity()", ("x(4,6)", "x(4,6)")),
    ("nn.PairwiseDistance(1,keepdim=True)", ("x(4,6)", "x(4,6)")),
    ("nn.Flatten()", ("x(2,4,6,6)",)),
    ("nn.Flatten(0,1)", ("x(2,4,6,6)",)),
    ("nn.Unflatten(1,(2,3))", ("x(4,6)",)),
    ("nn.Unflatten(1,3)", ()),
    ("nn.Unflatten(1,(2,3.))", ()),
    ("nn.Unflatten(-1,[2,-1])", ("x(4,6)",)),
    ("nn.Fold((4,4),2)", ("x(1,8,9)",)),
    ("nn.Unfold(2,1,1,2)", ("x(2,4,6,6)",)),
    ("nn.Upsample(scale_factor=2)", ("x(2,4,6,6)",)),
    ("nn.Upsample(scale_factor=(2,3),mode='bilinear',align_corners=False)", ("x(2,4,6,6)",)),
    ("nn.Upsample((3,3))", ("x(2,4,6,6)",)),
    ("nn.UpsamplingNearest2d(scale_factor=2)", ("x(2,4,6,6)",)),
    ("nn.UpsamplingBilinear2d(size=(3,3))", ("x(2,4,6,6)",)),
    ("nn.PixelShuffle(2)", ("x(2,4,6,6)",)),
    ("nn.PixelUnshuffle(2)", ("x(2,4,6,6)",)),
    ("nn.ChannelShuffle(2)", ("x(2,4,6,6)",)),
]


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(LINEAR)))
def case_linear(torch: Any, number: int) -> Any:
    return run_layer(torch, *LINEAR[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(CONVOLUTION)))
def case_convolution(torch: Any, number: int) -> Any:
    return run_layer(torch, *CONVOLUTION[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(TRANSPOSED_CONVOLUTION)))
def case_transposed_convolution(torch: Any, number: int) -> Any:
    return run_layer(torch, *TRANSPOSED_CONVOLUTION[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(NORMALIZATION)))
def case_normalization(torch: Any, number: int) -> Any:
    return run_layer(torch, *NORMALIZATION[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(POOLING)))
def case_pooling(torch: Any, number: int) -> Any:
    return run_layer(torch, *POOLING[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(FRACTIONAL_POOLING)))
def case_fractional_pooling(torch: Any, number: int) -> Any:
    return run_layer(torch, *FRACTIONAL_POOLING[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(PADDING)))
def case_padding(torch: Any, number: int) -> Any:
    return run_layer(torch, *PADDING[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(DROPOUT)))
def case_dropout(torch: Any, number: int) -> Any:
    return run_layer(torch, *DROPOUT[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(EMBEDDING)))
def case_embedding(torch: Any, number: int) -> Any:
    return run_layer(torch, *EMBEDDING[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(CONTAINER)))
def case_container(torch: Any, number: int) -> Any:
    return run_layer(torch, *CONTAINER[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(ACTIVATION)))
def case_activation(torch: Any, number: int) -> Any:
    return run_layer(torch, *ACTIVATION[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(LOSS)))
def case_loss(torch: Any, number: int) -> Any:
    return run_layer(torch, *LOSS[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(SHAPE)))
def case_shape(torch: Any, number: int) -> Any:
    return run_layer(torch, *SHAPE[number])
