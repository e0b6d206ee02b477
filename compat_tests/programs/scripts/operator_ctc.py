import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class SpectralConv1d(nn.Module):
    def __init__(self, i, o, modes):
        super().__init__()
        self.o, self.modes = o, modes
        self.weights = nn.Parameter((1 / (i * o)) * torch.rand(i, o, modes, dtype=torch.cfloat))

    def forward(self, x):
        xf = torch.fft.rfft(x, axis=-1)
        out = torch.zeros(x.shape[0], self.o, x.size(-1) // 2 + 1, dtype=torch.cfloat)
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", xf[:, :, : self.modes], self.weights)
        return torch.fft.irfft(out, n=x.size(-1))


m = SpectralConv1d(1, 1, 4)
opt = torch.optim.Adam(m.parameters(), 5e-3, weight_decay=1e-4)
t = torch.linspace(0, 1, 16)
for i in range(2):
    c = torch.randn(4, 3)
    u = sum(c[:, k : k + 1] * torch.sin(2 * torch.pi * (k + 1) * t) for k in range(3))
    loss = (m(u.unsqueeze(1)).squeeze(1) - u).square().sum(axis=1, keepdims=True).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("operator", i, "%.4f" % loss)
print(m.weights.dtype, m.weights.grad.abs().mean(axis=2))

protos = torch.randn(5, 8)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(net.parameters(), 0.02)
for i in range(2):
    lens = torch.randint(2, 5, (6,))
    targets = [torch.randint(1, 5, (n,)) for n in lens.tolist()]
    feats = [protos[s].repeat_interleave(2, 0) for s in targets]
    x = F.pad(nn.utils.rnn.pad_sequence(feats), (0, 0, 0, 0, 0, 8 - 2 * int(lens.max())))
    loss = ctc(net(x).log_softmax(2), torch.cat(targets), lens * 2, lens)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("ctc", i, f"{loss.item():.4f}")
# views of a tensor that gains a history
w = torch.arange(3.0, requires_grad=True)
out = torch.zeros(2, 3)
row, flat = out[0], out.view(-1)
out.add_(w)
(row * flat[:3]).sum().backward()
print(row.requires_grad, w.grad)
