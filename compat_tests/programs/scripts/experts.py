import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class MoE(nn.Module):
    def __init__(self, d, n=4, k=2):
        super().__init__()
        self.n, self.k = n, k
        self.gate = nn.Linear(d, n, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(n)
        )
        self.counts = torch.zeros(n)

    def forward(self, x):
        B, T, d = x.shape
        h = x.view(-1, d)
        w = F.softmax(self.gate(h), dim=1, dtype=torch.float)
        probs = w
        w, sel = torch.topk(w, self.k, dim=-1)
        w /= w.sum(dim=-1, keepdim=True)
        w = w.to(h.dtype)
        out = torch.zeros_like(h)
        mask = F.one_hot(sel, num_classes=self.n).permute(2, 1, 0)
        for e in range(self.n):
            idx, top_x = torch.where(mask[e])
            if top_x.shape[0] == 0:
                continue
            cur = h[None, top_x].reshape(-1, d)
            out.index_add_(0, top_x, self.experts[e](cur) * w[top_x, idx, None])
            self.counts[e] += top_x.shape[0]
        frac = F.one_hot(sel[:, 0], self.n).float().mean(0)
        self.aux = self.n * (frac * probs.mean(0)).sum()
        return out.view(B, T, d)


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.h = h

    def rope(self, x, pos):
        d = x.size(-1)
        inv = 1.0 / (10000 ** (torch.arange(0, d, 2).float() / d))
        f = torch.outer(pos.float(), inv)
        c, s = f.cos(), f.sin()
        x1, x2 = x[..., ::2], x[..., 1::2]
        return torch.stack((x1 * c - x2 * s, x1 * s + x2 * c), -1).flatten(-2)

    def forward(self, x, cache=None):
        B, T, d = x.shape
        q, k, v = (f(x).view(B, T, self.h, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        past = 0 if cache is None or cache[0] is None else cache[0].size(2)
        pos = torch.arange(past, past + T)
        q, k = self.rope(q, pos), self.rope(k, pos)
        if cache is not None:
            if cache[0] is not None:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[0], cache[1] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past == 0 and T > 1)
        return self.o(y.transpose(1, 2).reshape(B, T, d))


class LM(nn.Module):
    def __init__(self, V=16, d=32):
        super().__init__()
        self.emb = nn.Embedding(V, d)
        self.n1, self.n2, self.nf = nn.RMSNorm(d), nn.RMSNorm(d), nn.RMSNorm(d)
        self.attn, self.moe = Attn(d, 4), MoE(d)
        self.head = nn.Linear(d, V, bias=False)

    def forward(self, x, cache=None):
        x = self.emb(x)
        x = x + self.attn(self.n1(x), cache)
        x = x + self.moe(self.n2(x))
        return self.head(self.nf(x))


m = LM()
print(m)
opt = torch.optim.AdamW(m.parameters(), 3e-3)
for i in range(2):
    start, step = torch.randint(0, 16, (8, 1)), torch.randint(1, 4, (8, 1))
    seq = (start + step * torch.arange(13)) % 16
    logits = m(seq[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 16), seq[:, 1:].reshape(-1)) + 0.01 * m.moe.aux
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    if loss.isnan():
        print("nan!")
        break
    if i % 1 == 0:
        print(i, f"{loss.item():.4f}", f"{m.moe.aux.item():.4f}")
print((m.moe.counts / m.moe.counts.sum() > 0.02).all())
m.eval()
with torch.no_grad():
    prompt = torch.tensor([[1, 3, 5]])
    cache = [None, None]
    logits = m(prompt, cache)[:, -1]
    out = prompt
    for _ in range(2):
        nxt = logits.argmax(-1, keepdim=True)
        out = torch.cat([out, nxt], 1)
        logits = m(nxt, cache)[:, -1]
    full = prompt
    for _ in range(2):
        full = torch.cat([full, m(full)[:, -1].argmax(-1, keepdim=True)], 1)
    print(out, torch.equal(out, full), cache[0].shape)
    # beam search
    beams = [(prompt, 0.0)]
    for _ in range(2):
        cand = []
        for s, sc in beams:
            lp = F.log_softmax(m(s)[0, -1], -1)
            v, i = lp.topk(3)
            for a, b in zip(v, i):
                cand.append((torch.cat([s, b.view(1, 1)], 1), sc + a.item()))
        beams = sorted(cand, key=lambda c: c[1], reverse=True)[:3]
    for s, sc in beams:
        print(s.tolist(), "%.3f" % sc)
    # top-p sampling
    torch.manual_seed(3)
    logits = m(prompt)[0, -1] / 1.5
    sl, si = torch.sort(logits, descending=True)
    cp = torch.cumsum(F.softmax(sl, dim=-1), dim=-1)
    rm = cp > 0.9
    rm[..., 1:] = rm[..., :-1].clone()
    rm[..., 0] = 0
    logits[si[rm]] = -float("inf")
    print(torch.multinomial(F.softmax(logits, -1), 5, replacement=True), torch.isfinite(logits).sum())
