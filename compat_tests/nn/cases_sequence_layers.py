"""Recurrent layers, attention and transformers."""

from typing import Any

from compat_tests import case, tensor
from compat_tests.nn.running import run_layer

RECURRENT = [
    ("nn.RNN(3,4)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,2)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,2,bidirectional=True)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,batch_first=True)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,2,bias=False,bidirectional=True,batch_first=True)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,3,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.RNN(3,4,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.RNN(3,4)", ("x(5,3)",)),
    ("nn.RNN(3,4)", ("x(3)",)),
    ("nn.RNN(3,4)", ("x(5,2,4)",)),
    ("nn.RNN(3,4)", ("x(5,2,3).double()",)),
    ("nn.RNN(0,4)", ()),
    ("nn.RNN(3,0)", ()),
    ("nn.RNN(3,4,0)", ()),
    ("nn.RNN(3,4,bias=3)", ()),
    ("nn.RNN(3,4,batch_first=3)", ()),
    ("nn.RNN(3.,4)", ()),
    ("nn.RNN(3,4,dropout=2)", ()),
    ("nn.RNN(3,4,proj_size=2)", ()),
    ("nn.RNN(3,4,dropout=True)", ()),
    ("nn.RNN(3,4,proj_size=4)", ()),
    ("nn.RNN(3,4.5)", ()),
    ("nn.RNN(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.RNN(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.RNN(3,4,2,bidirectional=True)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.RNN(3,4,2,bidirectional=True)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.RNN(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.RNN(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.RNN(3,4)", ("x(5,2,3)", "x(1,2,4)")),
    ("nn.RNN(3,4)", ("x(5,2,3)", "x(2,4)")),
    ("nn.RNN(3,4)", ("x(5,3)", "x(1,4)")),
    ("nn.RNN(3,4)", ("x(5,3)", "x(1,1,4)")),
    ("nn.RNN(3,4)", ("x(5,2,3)", "x(1,3,4)")),
    ("nn.RNNCell(3,4)", ("x(2,3)",)),
    ("nn.RNNCell(3,4,bias=False)", ("x(3)",)),
    ("nn.RNNCell(3,4)", ("x(2,3)", "x(2,4)")),
    ("nn.RNNCell(3,4)", ("x(2,2)",)),
    ("nn.RNNCell(3,4)", ("x(2,3)", "x(3,4)")),
    ("nn.RNNCell(3,4)", ("x(2,3)", "x(2,5)")),
    ("nn.RNNCell(3,4)", ("x(2,3,3)",)),
    ("nn.RNNCell(3,4)", ("x(2,3)", "x(2,3,4)")),
    ("nn.LSTM(3,4)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,2)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,2,bidirectional=True)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,batch_first=True)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,2,bias=False,bidirectional=True,batch_first=True)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,3,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4)", ("x(5,3)",)),
    ("nn.LSTM(3,4)", ("x(3)",)),
    ("nn.LSTM(3,4)", ("x(5,2,4)",)),
    ("nn.LSTM(3,4)", ("x(5,2,3).double()",)),
    ("nn.LSTM(0,4)", ()),
    ("nn.LSTM(3,0)", ()),
    ("nn.LSTM(3,4,0)", ()),
    ("nn.LSTM(3,4,bias=3)", ()),
    ("nn.LSTM(3,4,batch_first=3)", ()),
    ("nn.LSTM(3.,4)", ()),
    ("nn.LSTM(3,4,dropout=2)", ()),
    ("nn.LSTM(3,4,proj_size=2)", ()),
    ("nn.LSTM(3,4,dropout=True)", ()),
    ("nn.LSTM(3,4,proj_size=4)", ()),
    ("nn.LSTM(3,4.5)", ()),
    ("nn.LSTM(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.LSTM(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    (
        "nn.LSTM(3,4,2,bidirectional=True)",
        ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",),
    ),
    ("nn.LSTM(3,4,2,bidirectional=True)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.LSTM(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.LSTM(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.LSTM(3,4)", ("x(5,2,3)", "(x(1,2,4),x(1,2,4))")),
    ("nn.LSTM(3,4)", ("x(5,2,3)", "(x(2,4),x(2,4))")),
    ("nn.LSTM(3,4)", ("x(5,3)", "(x(1,4),x(1,4))")),
    ("nn.LSTM(3,4)", ("x(5,3)", "(x(1,1,4),x(1,1,4))")),
    ("nn.LSTM(3,4)", ("x(5,2,3)", "(x(1,3,4),x(1,3,4))")),
    ("nn.LSTMCell(3,4)", ("x(2,3)",)),
    ("nn.LSTMCell(3,4,bias=False)", ("x(3)",)),
    ("nn.LSTMCell(3,4)", ("x(2,3)", "(x(2,4),x(2,4))")),
    ("nn.LSTMCell(3,4)", ("x(2,2)",)),
    ("nn.LSTMCell(3,4)", ("x(2,3)", "(x(3,4),x(3,4))")),
    ("nn.LSTMCell(3,4)", ("x(2,3)", "(x(2,5),x(2,5))")),
    ("nn.LSTMCell(3,4)", ("x(2,3,3)",)),
    ("nn.LSTMCell(3,4)", ("x(2,3)", "(x(2,3,4),x(2,3,4))")),
    ("nn.GRU(3,4)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,2)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,2,bidirectional=True)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,batch_first=True)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,2,bias=False,bidirectional=True,batch_first=True)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,3,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.GRU(3,4,dropout=0.3)", ("x(5,2,3)",)),
    ("nn.GRU(3,4)", ("x(5,3)",)),
    ("nn.GRU(3,4)", ("x(3)",)),
    ("nn.GRU(3,4)", ("x(5,2,4)",)),
    ("nn.GRU(3,4)", ("x(5,2,3).double()",)),
    ("nn.GRU(0,4)", ()),
    ("nn.GRU(3,0)", ()),
    ("nn.GRU(3,4,0)", ()),
    ("nn.GRU(3,4,bias=3)", ()),
    ("nn.GRU(3,4,batch_first=3)", ()),
    ("nn.GRU(3.,4)", ()),
    ("nn.GRU(3,4,dropout=2)", ()),
    ("nn.GRU(3,4,proj_size=2)", ()),
    ("nn.GRU(3,4,dropout=True)", ()),
    ("nn.GRU(3,4,proj_size=4)", ()),
    ("nn.GRU(3,4.5)", ()),
    ("nn.GRU(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.GRU(3,4,)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.GRU(3,4,2,bidirectional=True)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.GRU(3,4,2,bidirectional=True)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.GRU(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(5,3,3),[2,5,3],enforce_sorted=False)",)),
    ("nn.GRU(3,4,2,dropout=0.4)", ("nn.utils.rnn.pack_padded_sequence(x(3,5,3),[5,5,3],batch_first=True)",)),
    ("nn.GRU(3,4)", ("x(5,2,3)", "x(1,2,4)")),
    ("nn.GRU(3,4)", ("x(5,2,3)", "x(2,4)")),
    ("nn.GRU(3,4)", ("x(5,3)", "x(1,4)")),
    ("nn.GRU(3,4)", ("x(5,3)", "x(1,1,4)")),
    ("nn.GRU(3,4)", ("x(5,2,3)", "x(1,3,4)")),
    ("nn.GRUCell(3,4)", ("x(2,3)",)),
    ("nn.GRUCell(3,4,bias=False)", ("x(3)",)),
    ("nn.GRUCell(3,4)", ("x(2,3)", "x(2,4)")),
    ("nn.GRUCell(3,4)", ("x(2,2)",)),
    ("nn.GRUCell(3,4)", ("x(2,3)", "x(3,4)")),
    ("nn.GRUCell(3,4)", ("x(2,3)", "x(2,5)")),
    ("nn.GRUCell(3,4)", ("x(2,3,3)",)),
    ("nn.GRUCell(3,4)", ("x(2,3)", "x(2,3,4)")),
    ("nn.RNN(3,4,nonlinearity='relu')", ("x(5,2,3)",)),
    ("nn.RNN(3,4,1,'relu')", ("x(5,2,3)",)),
    ("nn.RNN(3,4,nonlinearity='x')", ()),
    ("nn.RNNCell(3,4,nonlinearity='relu')", ("x(2,3)",)),
    ("nn.RNNCell(3,4,nonlinearity='x')", ("x(2,3)",)),
    ("nn.LSTM(3,4,2,proj_size=2)", ("x(5,2,3)",)),
    ("nn.LSTM(3,4,2,proj_size=2,bidirectional=True,bias=False)", ("x(5,2,3)",)),
    ("nn.RNNBase('X',3,4)", ()),
    ("nn.LSTM(3,4,proj_size=-1)", ()),
]


ATTENTION = [
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False")),
    (
        "nn.MultiheadAttention(6,2)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,2)",
        (
            "x(3,2,6)",
            "x(5,2,6)",
            "x(5,2,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "x(3,5)", "False")),
    ("nn.MultiheadAttention(6,2,bias=False)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,2,bias=False)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False")),
    (
        "nn.MultiheadAttention(6,2,bias=False)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,2,bias=False)",
        (
            "x(3,2,6)",
            "x(5,2,6)",
            "x(5,2,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    ("nn.MultiheadAttention(6,2,bias=False)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "x(3,5)", "False")),
    ("nn.MultiheadAttention(6,3,add_bias_kv=True)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,3,add_bias_kv=True)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False")),
    (
        "nn.MultiheadAttention(6,3,add_bias_kv=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,3,add_bias_kv=True)",
        (
            "x(3,2,6)",
            "x(5,2,6)",
            "x(5,2,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    (
        "nn.MultiheadAttention(6,3,add_bias_kv=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "x(3,5)", "False"),
    ),
    ("nn.MultiheadAttention(6,2,add_zero_attn=True)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,2,add_zero_attn=True)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False")),
    (
        "nn.MultiheadAttention(6,2,add_zero_attn=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,2,add_zero_attn=True)",
        (
            "x(3,2,6)",
            "x(5,2,6)",
            "x(5,2,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    (
        "nn.MultiheadAttention(6,2,add_zero_attn=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "x(3,5)", "False"),
    ),
    ("nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    (
        "nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False"),
    ),
    (
        "nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)",
        (
            "x(3,2,6)",
            "x(5,2,6)",
            "x(5,2,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    (
        "nn.MultiheadAttention(6,2,add_bias_kv=True,add_zero_attn=True)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "x(3,5)", "False"),
    ),
    ("nn.MultiheadAttention(6,2,batch_first=True)", ("x(2,3,6)", "x(2,5,6)", "x(2,5,6)")),
    ("nn.MultiheadAttention(6,2,batch_first=True)", ("x(2,3,6)", "x(2,5,6)", "x(2,5,6)", "None", "False")),
    (
        "nn.MultiheadAttention(6,2,batch_first=True)",
        ("x(2,3,6)", "x(2,5,6)", "x(2,5,6)", "torch.tensor([[True,False,False,False,True],[False]*5])"),
    ),
    (
        "nn.MultiheadAttention(6,2,batch_first=True)",
        (
            "x(2,3,6)",
            "x(2,5,6)",
            "x(2,5,6)",
            "torch.tensor([[True,False,False,False,True],[False]*5])",
            "False",
            "torch.ones(3,5,dtype=torch.bool).triu(3)",
        ),
    ),
    (
        "nn.MultiheadAttention(6,2,batch_first=True)",
        ("x(2,3,6)", "x(2,5,6)", "x(2,5,6)", "None", "True", "x(3,5)", "False"),
    ),
    ("nn.MultiheadAttention(6,2,dropout=0.4)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,2,dropout=0.4)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False")),
    ("nn.MultiheadAttention(6,2,kdim=4,vdim=5)", ("x(3,2,6)", "x(5,2,4)", "x(5,2,5)")),
    ("nn.MultiheadAttention(6,4)", ()),
    ("nn.MultiheadAttention(0,4)", ()),
    ("nn.MultiheadAttention(6,2)", ("x(3,6)", "x(5,6)", "x(5,6)")),
    (
        "nn.MultiheadAttention(6,2)",
        ("x(3,6)", "x(5,6)", "x(5,6)", "torch.tensor([True]+[False]*4)", "True", "torch.zeros(2,3,5)"),
    ),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,6)", "x(5,6)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "torch.ones(3,3)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "torch.ones(3,3)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "torch.ones(3,3,3)")),
    (
        "nn.MultiheadAttention(6,2)",
        ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "True", "torch.ones(3,5,dtype=torch.int64)"),
    ),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(4,2,6)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,5)", "x(5,2,6)", "x(5,2,6)")),
    ("nn.MultiheadAttention(6,2)", ("x(3,2,6)", "x(5,2,6)", "x(5,2,6)", "None", "False", "None", "True", "True")),
    (
        "nn.MultiheadAttention(6,2)",
        (
            "x(3,2,6)",
            "x(3,2,6)",
            "x(3,2,6)",
            "None",
            "False",
            "nn.Transformer.generate_square_subsequent_mask(3)",
            "True",
            "True",
        ),
    ),
    ("nn.MultiheadAttention(6,2).eval()", ("x(3,2,6)", "x(3,2,6)", "x(3,2,6)", "None", "False")),
]


TRANSFORMER = [
    ("nn.TransformerEncoderLayer(6,2,8)", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoderLayer(6,2,8,0.3)", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,0.3)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.3),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.3),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoderLayer(6,2,8,0.,batch_first=True)", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,0.,batch_first=True)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.,batch_first=True),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.,batch_first=True),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoderLayer(6,2,8,0.,'gelu')", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,0.,'gelu')", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.,'gelu'),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.,'gelu'),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoderLayer(6,2,8,0.,norm_first=True,bias=False)", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,0.,norm_first=True,bias=False)", ("x(3,2,6)", "x(5,2,6)")),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.,norm_first=True,bias=False),2,nn.LayerNorm(6))",
        ("x(3,2,6)",),
    ),
    (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.,norm_first=True,bias=False),2)",
        ("x(3,2,6)", "x(5,2,6)"),
    ),
    ("nn.TransformerEncoderLayer(6,2,8,0.1,nn.GELU())", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,0.1,nn.GELU())", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,0.1,nn.GELU()),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,0.1,nn.GELU()),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoderLayer(6,2,8,activation='foo')", ("x(3,2,6)",)),
    ("nn.TransformerDecoderLayer(6,2,8,activation='foo')", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6,2,8,activation='foo'),2,nn.LayerNorm(6))", ("x(3,2,6)",)),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6,2,8,activation='foo'),2)", ("x(3,2,6)", "x(5,2,6)")),
    ("nn.Transformer(6,2,2,2,8)", ("x(5,2,6)", "x(3,2,6)")),
    ("nn.Transformer(6,2,1,1,8)", ("x(5,2,6)", "x(3,3,6)")),
    ("nn.Transformer(6,2,1,1,8)", ("x(5,2,6)", "x(3,2,5)")),
    (
        "nn.Transformer(6,2,1,1,8)",
        ("x(5,2,6)", "x(3,2,6)", "None", "nn.Transformer.generate_square_subsequent_mask(3)"),
    ),
    (
        "nn.Transformer(6,2,1,1,8)",
        (
            "x(5,2,6)",
            "x(3,2,6)",
            "None",
            "None",
            "None",
            "torch.zeros(2,5)>0",
            "torch.zeros(2,3)>0",
            "torch.zeros(2,5)>0",
        ),
    ),
]


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(RECURRENT)))
def case_recurrent(torch: Any, number: int) -> Any:
    return run_layer(torch, *RECURRENT[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(ATTENTION)))
def case_attention(torch: Any, number: int) -> Any:
    return run_layer(torch, *ATTENTION[number])


@case(rtol=1e-4, atol=2e-5)
@case.params("number", range(len(TRANSFORMER)))
def case_transformer(torch: Any, number: int) -> Any:
    return run_layer(torch, *TRANSFORMER[number])


@case(rtol=1e-4, atol=2e-5)
def case_batch_first_dropout(torch: Any) -> Any:
    return run_layer(torch, "nn.Transformer(6,2,1,1,8,batch_first=True)", ("x(2,5,6)", "x(2,3,6)"))


@case(rtol=1e-4, atol=2e-5)
@case.params("norm_first", [False, True])
@case.params("batch_first", [False, True])
def case_transformer_without_dropout(torch: Any, norm_first: bool, batch_first: bool) -> Any:
    text = f"nn.Transformer(6,2,1,2,8,dropout=0.0,batch_first={batch_first},norm_first={norm_first})"
    return run_layer(torch, text, ("x(2,2,6)", "x(2,2,6)"))


@case(rtol=1e-4, atol=2e-5)
def case_encoder_in_evaluation(torch: Any) -> Any:
    nn = torch.nn
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2).eval()
    x = tensor(torch, (3, 4, 6))
    left = torch.tensor([[False] * 4, [False, False, True, True], [False, True, True, True]])
    right = left.flip(1)
    with torch.no_grad():
        return [encoder(x, src_key_padding_mask=mask) for mask in (left, right, None)]
