"""A program that trains, stops with a checkpoint, and goes on from one: with the same losses on PyTorch and torchlike.

resume_program.py KIND FILE EPOCHS: train KIND from FILE, if it exists, for EPOCHS more epochs, and save FILE again."""

import os
import random
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

kind, path, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
TOTAL = 6
torch.manual_seed(7)
random.seed(7)
np.random.seed(7)


def parts():
    """The model, its optimizer, the schedule, whether that steps with each batch, and the scaler."""
    net = nn.Sequential(
        nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(16, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 3),
    )  # fmt: skip
    if kind == "adam":
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
        return net, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), False, None
    if kind == "sgd":
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=5)
        return net, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, TOTAL), False, scaler
    optimizer = torch.optim.AdamW(
        [{"params": net[0].parameters(), "weight_decay": 0.1}, {"params": net[1:].parameters()}], lr=0.01
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.03, 0.05], total_steps=TOTAL * 8)
    return net, optimizer, schedule, True, None


generator = torch.Generator().manual_seed(99)
x = torch.randn(60, 8, generator=generator)
y = (x[:, 0] > 0).long() + (x[:, 1] * x[:, 2] > 0).long()
order = torch.Generator().manual_seed(5)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, generator=order)
unseeded = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
net, optimizer, schedule, each_batch, scaler = parts()
start = 0
if os.path.exists(path):
    saved = torch.load(path, weights_only=False)
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
    if scaler is not None:
        scaler.load_state_dict(saved["scaler"])
    torch.set_rng_state(saved["rng"])
    order.set_state(saved["order"])
    random.setstate(saved["python"])
    np.random.set_state(saved["numpy"])
    start = saved["epoch"]

loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
for epoch in range(start, start + epochs):
    net.train()
    total = 0.0
    for xb, yb in loader if epoch % 2 else unseeded:
        optimizer.zero_grad()
        if random.random() < 0.3:
            xb = xb + float(np.random.rand()) * 0.1 * torch.randn_like(xb)
        loss = loss_fn(net(xb), yb)
        if scaler is None:
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        if each_batch:
            schedule.step()
        total += loss.item() * len(xb)
    if not each_batch:
        schedule.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(x).argmax(1) == y).float().mean().item()
    rates = ", ".join(f"{r:.6f}" for r in schedule.get_last_lr())
    scale = "" if scaler is None else f" scale {scaler.get_scale()}"
    print(f"epoch {epoch}: loss {total / len(x):.4f} accuracy {accuracy:.3f} lr {rates}{scale}")

torch.save(
    {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "scaler": None if scaler is None else scaler.state_dict(),
        "rng": torch.get_rng_state(),
        "order": order.get_state(),
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "epoch": start + epochs,
    },
    path,
)
