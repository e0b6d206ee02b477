"""A small convolutional network on scikit-learn's handwritten digits (8x8 pixels).

Shows Conv2d, BatchNorm2d, MaxPool2d, a learning-rate schedule, random_split and a saved state_dict.

    python digits_cnn.py                 # under PyTorch
    python -m torchlike digits_cnn.py    # the same file, compiled by XLA
"""

import io

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

EPOCHS = 10


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


def main():
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    train_set, test_set = random_split(TensorDataset(images, labels), [1437, 360])
    # A last batch of another size would be one more program to compile; a few images are left out instead.
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=120)

    model = CNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)

    for epoch in range(1, EPOCHS + 1):
        model.train()
        losses = []
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        learning_rate = scheduler.get_last_lr()[0]
        scheduler.step()
        print(
            f"epoch {epoch:2d}  lr {learning_rate:.5f}  loss {torch.stack(losses).mean().item():.4f}  "
            f"test accuracy {accuracy(model, test_loader):.2%}"
        )

    final = accuracy(model, test_loader)
    print(f"final test accuracy {final:.2%}")
    assert final > 0.97, "expected more than 97 %"

    # What was trained can be saved and comes back the same.
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    restored = CNN()
    print(restored.load_state_dict(torch.load(file)))
    print("the restored model agrees:", accuracy(restored, test_loader) == final)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in loader)
    return correct / len(loader.dataset)


if __name__ == "__main__":
    main()
