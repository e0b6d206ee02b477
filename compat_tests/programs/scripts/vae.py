import torch, torch.nn as nn, torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(1)
X = torch.tensor(load_digits().data, dtype=torch.float32) / 16


class VAE(nn.Module):
    def __init__(s):
        super().__init__()
        s.fc1 = nn.Linear(64, 40)
        s.fc21 = nn.Linear(40, 6)
        s.fc22 = nn.Linear(40, 6)
        s.fc3 = nn.Linear(6, 40)
        s.fc4 = nn.Linear(40, 64)

    def encode(s, x):
        h = F.relu(s.fc1(x))
        return s.fc21(h), s.fc22(h)

    def reparameterize(s, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(s, z):
        return torch.sigmoid(s.fc4(F.relu(s.fc3(z))))

    def forward(s, x):
        mu, lv = s.encode(x.view(-1, 64))
        return s.decode(s.reparameterize(mu, lv)), mu, lv


m = VAE()
opt = torch.optim.Adam(m.parameters(), lr=1e-3)
dl = torch.utils.data.DataLoader(X, batch_size=128, shuffle=True)
for e in range(5):
    tot = 0
    for x in dl:
        opt.zero_grad()
        r, mu, lv = m(x)
        l = F.binary_cross_entropy(r, x, reduction="sum") - 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
        l.backward()
        tot += l.item()
        opt.step()
    print(e, "%.3f" % (tot / len(X)))
with torch.no_grad():
    print(m.decode(torch.randn(2, 6)).view(2, 8, 8)[0, 0])
