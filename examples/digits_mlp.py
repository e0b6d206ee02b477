"""An MLP that reads scikit-learn's handwritten digits (1,797 images of 8x8 pixels).

python digits_mlp.py                 # under PyTorch
python -m torchlike digits_mlp.py    # the same file, compiled by XLA
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 20


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(64, 256)
        self.hidden2 = nn.Linear(256, 64)
        self.output = nn.Linear(64, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = self.dropout(torch.relu(self.hidden1(x)))
        x = self.dropout(torch.relu(self.hidden2(x)))
        return self.output(x)


def load_data():
    """Training and test sets of (64 pixels in [0, 1], label)."""
    digits = load_digits()
    split = train_test_split(digits.data / 16.0, digits.target, test_size=0.2, random_state=42, stratify=digits.target)
    x_train, x_test, y_train, y_test = (torch.from_numpy(part) for part in split)
    return TensorDataset(x_train.float(), y_train), TensorDataset(x_test.float(), y_test)


def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train_set, test_set = load_data()
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)

    model = MLP()
    print(model)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    print(f"{len(train_set)} training images, {len(test_set)} test images")

    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(model, train_loader, loss_fn, optimizer)
        scheduler.step()
        print(f"epoch {epoch:2d}  loss {loss:.4f}  test accuracy {accuracy(model, test_loader):.2%}")

    final = accuracy(model, test_loader)
    print(f"final test accuracy {final:.2%}")
    assert final > 0.97, "expected more than 97 %"


if __name__ == "__main__":
    main()
