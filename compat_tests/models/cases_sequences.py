"""Sequence models: thirty steps from the same state give PyTorch's losses."""

from typing import Any

from compat_tests.harness import case, tensor
from compat_tests.models.building import labels, train


@case(rtol=1e-4, atol=1e-6, modes=("default",))
@case.params("kind", ["LSTM", "GRU"])
def case_tagger(torch: Any, kind: str) -> Any:
    """Packed sequences of unequal length, unsorted, bidirectional."""
    nn = torch.nn
    rnn_utils = nn.utils.rnn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(12, 6, padding_idx=0)
            self.rnn = getattr(nn, kind)(6, 5, num_layers=2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(10, 4)

        def forward(self, words, lengths):
            packed = rnn_utils.pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
            states, _ = rnn_utils.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
            return self.out(states)

    model = Tagger()
    sentences = [labels(torch, n, 11, n) + 1 for n in (3, 6, 4)]
    words = rnn_utils.pad_sequence(sentences, batch_first=True)
    tags = rnn_utils.pad_sequence([s % 4 for s in sentences], batch_first=True, padding_value=-100)
    lengths = torch.tensor([3, 6, 4])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    return train(
        torch, lambda step: nn.functional.cross_entropy(model(words, lengths).flatten(0, 1), tags.flatten()), optimizer
    )


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_transformer_encoder(torch: Any) -> Any:
    nn = torch.nn
    embed, head = nn.Embedding(10, 16), nn.Linear(16, 10)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 24, dropout=0.1), 2)
    words = labels(torch, (7, 3), 10)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    modules = nn.ModuleList([embed, encoder, head])
    optimizer = torch.optim.SGD(modules.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)

    def loss_of(step):
        out = head(encoder(embed(words[:-1]) * 4.0, mask=mask, is_causal=True))
        return nn.functional.cross_entropy(out.view(-1, 10), words[1:].reshape(-1))

    def after():
        nn.utils.clip_grad_norm_(modules.parameters(), 0.5)
        scheduler.step()

    return train(torch, loss_of, optimizer, after=after)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_sequence_to_sequence(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    source, target, head = nn.Embedding(9, 8), nn.Embedding(9, 8), nn.Linear(8, 9)
    everything = nn.ModuleList([model, source, target, head])
    a, b = labels(torch, (3, 5), 9, 1), labels(torch, (3, 6), 9, 2)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    causal = model.generate_square_subsequent_mask(5)
    optimizer = torch.optim.Adam(everything.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) ** -0.5, (n + 1) * 8**-1.5))

    def loss_of(step):
        out = model(
            source(a), target(b[:, :-1]), tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding
        )
        return nn.functional.cross_entropy(head(out).transpose(1, 2), b[:, 1:], label_smoothing=0.1)

    return train(torch, loss_of, optimizer, after=warmup.step)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_attention_block(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, kdim=5, vdim=5, batch_first=True, add_bias_kv=True)
            self.norm = nn.RMSNorm(12)
            self.gate = nn.Linear(12, 24)
            self.own = nn.Linear(12, 36)

        def forward(self, x, memory):
            out, weights = self.attention(x, memory, memory)
            x = self.norm(x + out)
            q, k, v = (t.unflatten(-1, (3, 4)).transpose(1, 2) for t in self.own(x).chunk(3, -1))
            own = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return F.glu(self.gate(x + own.transpose(1, 2).flatten(2))), weights

    model = Block()
    x, memory, y = tensor(torch, (2, 4, 12)), tensor(torch, (2, 6, 5), seed=1), tensor(torch, (2, 4, 12), seed=2)

    def loss_of(step):
        out, weights = model(x, memory)
        entropy = -(weights * weights.clamp_min(1e-9).log()).sum(-1).mean()
        return F.mse_loss(out, y) + 0.01 * entropy

    return train(torch, loss_of, torch.optim.Adamax(model.parameters(), lr=2e-2))


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_text_classifier(torch: Any) -> Any:
    nn = torch.nn
    bag, layer = nn.EmbeddingBag(20, 8, mode="mean"), nn.Linear(8, 3)
    words = labels(torch, 23, 20)
    offsets = torch.tensor([0, 5, 9, 9, 16])
    y = labels(torch, 5, 3)
    for p in (bag.weight, layer.weight):
        nn.init.uniform_(p, -0.5, 0.5)
    optimizer = torch.optim.SGD([{"params": bag.parameters(), "lr": 2.0}, {"params": layer.parameters()}], lr=0.5)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(layer(bag(words, offsets)), y, weight=torch.tensor([1.0, 2.0, 0.5]))
        loss.backward()
        nn.utils.clip_grad_value_(bag.parameters(), 0.1)
        optimizer.step()
        plateau.step(loss.item())
        losses.append(loss.item())
    return losses, plateau.get_last_lr()


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_speech(torch: Any) -> Any:
    """Conv1d features and connectionist temporal classification."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv1d(4, 8, 5, stride=2, padding=2), nn.BatchNorm1d(8), nn.GELU(),
        nn.Conv1d(8, 6, 3, padding=1, groups=2),
    )  # fmt: skip
    sound, targets = tensor(torch, (3, 4, 24)), labels(torch, (3, 4), 5) + 1
    loss = nn.CTCLoss(zero_infinity=True)

    def loss_of(step):
        scores = model(sound).permute(2, 0, 1).log_softmax(2)
        return loss(scores, targets, torch.tensor([12, 12, 10]), torch.tensor([4, 3, 2]))

    return train(torch, loss_of, torch.optim.Adam(model.parameters(), lr=1e-2))


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_character_model(torch: Any) -> Any:
    """Truncated backpropagation through time: the hidden state goes on, detached."""
    nn = torch.nn
    embed, rnn, out = nn.Embedding(7, 6), nn.RNN(6, 10, nonlinearity="tanh"), nn.Linear(10, 7)
    modules = nn.ModuleList([embed, rnn, out])
    text = labels(torch, (31, 2), 7)
    optimizer = torch.optim.SGD(modules.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=31)
    hidden = torch.zeros(1, 2, 10)

    def loss_of(step):
        nonlocal hidden
        at = step % 6 * 5
        states, hidden = rnn(embed(text[at : at + 5]), hidden.detach())
        return nn.functional.cross_entropy(out(states).flatten(0, 1), text[at + 1 : at + 6].flatten())

    def after():
        nn.utils.clip_grad_norm_(modules.parameters(), 0.25)
        scheduler.step()

    return train(torch, loss_of, optimizer, after=after)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_cells(torch: Any) -> Any:
    """An encoder of LSTM cells and a decoder of GRU cells, unrolled in Python, with teacher forcing."""
    nn = torch.nn
    encoder, decoder, out = nn.LSTMCell(3, 8), nn.GRUCell(2, 8), nn.Linear(8, 2)
    modules = nn.ModuleList([encoder, decoder, out])
    x, y = tensor(torch, (5, 4, 3)), tensor(torch, (4, 4, 2), seed=1)
    optimizer = torch.optim.Adagrad(modules.parameters(), lr=0.05)

    def loss_of(step):
        state = None
        for t in range(5):
            state = encoder(x[t], state)
        h, loss, last = state[0], 0.0, torch.zeros(4, 2)
        for t in range(4):
            h = decoder(last, h)
            predicted = out(h)
            loss = loss + nn.functional.smooth_l1_loss(predicted, y[t])
            last = y[t] if (step + t) % 2 else predicted
        return loss

    return train(torch, loss_of, optimizer)
