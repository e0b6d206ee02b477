import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(1)
data = [
    ("The dog ate the apple".split(), ["DET", "NN", "V", "DET", "NN"]),
    ("Everybody read that book".split(), ["NN", "V", "DET", "NN"]),
]
w2i = {}
for s, t in data:
    for w in s:
        w2i.setdefault(w, len(w2i))
t2i = {"DET": 0, "NN": 1, "V": 2}
prep = lambda s, m: torch.tensor([m[w] for w in s], dtype=torch.long)


class LSTMTagger(nn.Module):
    def __init__(s, E, H, V, T):
        super().__init__()
        s.H = H
        s.emb = nn.Embedding(V, E)
        s.lstm = nn.LSTM(E, H)
        s.out = nn.Linear(H, T)

    def forward(s, x):
        e = s.emb(x)
        o, _ = s.lstm(e.view(len(x), 1, -1))
        return F.log_softmax(s.out(o.view(len(x), -1)), dim=1)


m = LSTMTagger(6, 6, len(w2i), 3)
lf = nn.NLLLoss()
opt = torch.optim.SGD(m.parameters(), lr=0.1)
with torch.no_grad():
    print(m(prep(data[0][0], w2i)))
for e in range(100):
    for s, t in data:
        m.zero_grad()
        l = lf(m(prep(s, w2i)), prep(t, t2i))
        l.backward()
        opt.step()
with torch.no_grad():
    print(m(prep(data[0][0], w2i)), l)
