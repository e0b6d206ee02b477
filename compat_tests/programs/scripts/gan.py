import torch, torch.nn as nn

torch.manual_seed(2)
G = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.BatchNorm1d(32), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(32, 1))
bce = nn.BCEWithLogitsLoss()
og = torch.optim.Adam(G.parameters(), 2e-3, betas=(0.5, 0.999))
od = torch.optim.Adam(D.parameters(), 2e-3, betas=(0.5, 0.999))


def weights_init(m):
    if m.__class__.__name__.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.2)


G.apply(weights_init)
D.apply(weights_init)
for i in range(200):
    real = torch.randn(64, 2) * 0.5 + torch.tensor([1.0, -1.0])
    z = torch.randn(64, 8)
    D.zero_grad()
    ld = bce(D(real), torch.ones(64, 1)) + bce(D(G(z).detach()), torch.zeros(64, 1))
    ld.backward()
    od.step()
    G.zero_grad()
    lg = bce(D(G(z)), torch.ones(64, 1))
    lg.backward()
    og.step()
    if i % 50 == 49:
        print(i, "%.4f %.4f" % (ld.item(), lg.item()))
G.eval()
print(G(torch.zeros(1, 8)))
