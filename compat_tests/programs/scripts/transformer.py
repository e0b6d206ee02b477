import torch, torch.nn as nn, math

torch.manual_seed(0)


class PE(nn.Module):
    def __init__(s, d, L=100):
        super().__init__()
        pe = torch.zeros(L, d)
        p = torch.arange(0, L).unsqueeze(1).float()
        div = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
        pe[:, 0::2] = torch.sin(p * div)
        pe[:, 1::2] = torch.cos(p * div)
        s.register_buffer("pe", pe)

    def forward(s, x):
        return x + s.pe[: x.size(1)]


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(20, 32)
        s.pe = PE(32)
        s.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2, enable_nested_tensor=False
        )
        s.o = nn.Linear(32, 20)

    def forward(s, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        return s.o(s.enc(s.pe(s.e(x)), mask=mask, is_causal=True))


m = M()
opt = torch.optim.AdamW(m.parameters(), lr=1e-3)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 30)
print(sum(p.numel() for p in m.parameters()))
for i in range(30):
    x = torch.randint(0, 20, (8, 13))
    y = x.roll(-1, 1)
    l = nn.functional.cross_entropy(m(x).flatten(0, 1), y.flatten())
    opt.zero_grad()
    l.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    sch.step()
    if i % 10 == 9:
        print(i, "%.4f" % l.item(), "%.6f" % sch.get_last_lr()[0])
