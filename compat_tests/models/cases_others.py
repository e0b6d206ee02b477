"""Other families: thirty steps from the same state give PyTorch's losses."""

import math
from typing import Any

from compat_tests.harness import case, tensor
from compat_tests.models.building import labels, train


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_mlp(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(10, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(32, 16),
        nn.Mish(),
        nn.Linear(16, 3),
    )
    x, y = tensor(torch, (40, 10)), labels(torch, 40, 3)
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        for bx, by in loader:
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.cross_entropy(model(bx), by)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_variational_autoencoder(torch: Any) -> Any:
    nn = torch.nn

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Linear(12, 16)
            self.mean, self.log_variance = nn.Linear(16, 3), nn.Linear(16, 3)
            self.decode = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 12))

        def forward(self, x):
            h = torch.tanh(self.encode(x))
            mean, log_variance = self.mean(h), self.log_variance(h)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            return self.decode(z), mean, log_variance

    model = VAE()
    x = (tensor(torch, (6, 12)) > 0).float()

    def loss_of(step):
        out, mean, log_variance = model(x)
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return nn.functional.binary_cross_entropy_with_logits(out, x, reduction="sum") + divergence

    return train(torch, loss_of, torch.optim.Adam(model.parameters(), lr=1e-2))


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_siamese_triplet(torch: Any) -> Any:
    nn = torch.nn
    tower = nn.Sequential(nn.Linear(8, 16), nn.CELU(), nn.Linear(16, 4))
    anchor, near, far = (tensor(torch, (6, 8), seed=s) for s in range(3))
    triplet, cosine = nn.TripletMarginLoss(margin=1.0, swap=True), nn.CosineEmbeddingLoss(margin=0.2)
    sign = torch.tensor([1.0, -1.0] * 3)
    optimizer = torch.optim.ASGD(tower.parameters(), lr=0.01)
    return train(
        torch,
        lambda step: triplet(tower(anchor), tower(near), tower(far)) + cosine(tower(anchor), tower(near), sign),
        optimizer,
    )


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_actor_critic(torch: Any) -> Any:
    """Actions are drawn: the streams of random numbers must agree as well."""
    nn = torch.nn
    body, actor, critic = nn.Linear(5, 16), nn.Linear(16, 3), nn.Linear(16, 1)
    modules = nn.ModuleList([body, actor, critic])
    states = tensor(torch, (8, 5))
    optimizer = torch.optim.RMSprop(modules.parameters(), lr=5e-3)

    def loss_of(step):
        h = body(states).relu()
        policy = torch.distributions.Categorical(logits=actor(h))
        actions = policy.sample()
        rewards = (actions == torch.arange(8) % 3).float()
        returns, total = [], 0.0
        for r in rewards.tolist()[::-1]:
            total = r + 0.9 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        values = critic(h).squeeze(-1)
        advantage = (returns - values).detach()
        losses = -policy.log_prob(actions) * advantage
        return losses.mean() + 0.5 * nn.functional.mse_loss(values, returns) - 0.01 * policy.entropy().mean()

    return train(torch, loss_of, optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_graph_convolution(torch: Any) -> Any:
    nn = torch.nn
    edges = torch.stack([labels(torch, 30, 10, 1), labels(torch, 30, 10, 2)])
    degree = torch.zeros(10).index_add_(0, edges[1], torch.ones(30)).clamp_(min=1)

    class Convolution(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(inner, outer))
            self.bias = nn.Parameter(torch.zeros(outer))
            nn.init.xavier_uniform_(self.weight)

        def forward(self, x):
            x = x @ self.weight
            messages = x[edges[0]] / degree[edges[1]].unsqueeze(1).sqrt()
            return torch.zeros_like(x).index_add(0, edges[1], messages) + self.bias

    first, second = Convolution(6, 12), Convolution(12, 3)
    x, y = tensor(torch, (10, 6)), labels(torch, 10, 3)
    seen = torch.tensor([True, False] * 5)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2, weight_decay=5e-4)

    def loss_of(step):
        h = nn.functional.dropout(first(x).relu(), 0.3, training=True)
        return nn.functional.nll_loss(second(h).log_softmax(1)[seen], y[seen])

    return train(torch, loss_of, optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_autoencoder_with_weight_norm(torch: Any) -> Any:
    nn = torch.nn
    parametrizations = nn.utils.parametrizations
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(9, 5)), nn.Hardtanh(),
        parametrizations.spectral_norm(nn.Linear(5, 5)), nn.SELU(), parametrizations.weight_norm(nn.Linear(5, 9)),
    )  # fmt: skip
    x = tensor(torch, (7, 9))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    return train(torch, lambda step: nn.functional.l1_loss(model(x), x), optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_contrastive(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.LayerNorm(16), nn.GELU(approximate="tanh"), nn.Linear(16, 6))
    temperature = nn.Parameter(torch.tensor(math.log(1 / 0.2)))
    x = tensor(torch, (6, 8))
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.AdamW([*model.parameters(), temperature], lr=1e-2)

    def loss_of(step):
        a = F.normalize(model(x + 0.1 * torch.randn(6, 8)), dim=-1)
        b = F.normalize(model(x + 0.1 * torch.randn(6, 8)), dim=-1)
        logits = a @ b.T * temperature.exp().clamp(max=100)
        target = torch.arange(6)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    losses = train(torch, loss_of, optimizer, after=lambda: ema.update_parameters(model))
    with torch.no_grad():
        return losses, ema(x).abs().mean().item()


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_mixture_density(torch: Any) -> Any:
    nn, D = torch.nn, torch.distributions
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9))
    x = torch.linspace(-1, 1, 20).unsqueeze(1)
    y = (3 * x).sin().squeeze(1) + 0.1 * tensor(torch, 20)

    def loss_of(step):
        weights, means, scales = model(x).chunk(3, -1)
        mixture = D.MixtureSameFamily(D.Categorical(logits=weights), D.Normal(means, scales.exp()))
        return -mixture.log_prob(y).mean()

    return train(torch, loss_of, torch.optim.Adam(model.parameters(), lr=2e-2))


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_lbfgs_regression(torch: Any) -> Any:
    """An optimizer that calls a closure several times a step."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    x = tensor(torch, (12, 3))
    y = (x[:, :1] * x[:, 1:2]).sin()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=2, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(15):
        losses.append(float(optimizer.step(closure)))
    return losses


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_mixed_precision(torch: Any) -> Any:
    """bfloat16 autocast with gradient accumulation: as far as its eight bits agree."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x, y = tensor(torch, (4, 6, 8)), labels(torch, (4, 6), 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(30):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x[step % 4]), y[step % 4]) / 2
        loss.backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses
