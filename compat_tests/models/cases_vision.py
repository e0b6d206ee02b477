"""Image models: thirty steps from the same state give PyTorch's losses."""

from typing import Any

from compat_tests.harness import case, tensor
from compat_tests.models.building import labels, train


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_cnn(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32, 5),
    )  # fmt: skip
    x, y = tensor(torch, (8, 1, 12, 12), seed=1), labels(torch, 8, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    return train(torch, lambda step: nn.functional.cross_entropy(model(x), y), optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_resnet_block(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.down = None
            if stride != 1 or inner != outer:
                self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x):
            out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
            out += x if self.down is None else self.down(x)
            return F.relu(out)

    blocks = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Block(8, 8, 1), Block(8, 16, 2))
    head = nn.Linear(16, 4)
    for m in blocks.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    x, y = tensor(torch, (4, 3, 8, 8), seed=2), labels(torch, 4, 4)
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.02, momentum=0.9, nesterov=True)
    losses = train(torch, lambda step: F.cross_entropy(head(blocks(x).mean((2, 3))), y, label_smoothing=0.1), optimizer)
    blocks.eval()
    with torch.no_grad():
        return losses, head(blocks(x).mean((2, 3))).softmax(1).max().item()


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_unet_block(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1 = nn.Conv2d(1, 6, 3, padding=1)
            self.down2 = nn.Conv2d(6, 12, 3, padding=1)
            self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
            self.merge = nn.Conv2d(12, 6, 3, padding=1)
            self.norm = nn.InstanceNorm2d(6, affine=True)
            self.out = nn.Conv2d(6, 1, 1)

        def forward(self, x):
            a = F.leaky_relu(self.down1(x), 0.1)
            b = F.leaky_relu(self.down2(F.max_pool2d(a, 2)), 0.1)
            b = F.interpolate(F.avg_pool2d(b, 2), scale_factor=2, mode="bilinear", align_corners=False) + b
            return self.out(self.norm(self.merge(torch.cat([a, self.up(b)], 1))))

    model = UNet()
    x = tensor(torch, (2, 1, 8, 8), seed=3)
    mask = (x > 0).float()

    def loss_of(step):
        logits = model(x)
        p = logits.sigmoid()
        dice = 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)
        return F.binary_cross_entropy_with_logits(logits, mask) + dice

    return train(torch, loss_of, torch.optim.AdamW(model.parameters(), lr=1e-2))


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_group_norm_silu(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding="same", padding_mode="reflect"), nn.GroupNorm(4, 8), nn.SiLU(),
        nn.Conv2d(8, 8, 3, dilation=2, padding=2), nn.GroupNorm(2, 8), nn.SiLU(inplace=True),
        nn.PixelUnshuffle(2), nn.Conv2d(32, 4, 1), nn.Flatten(2),
    )  # fmt: skip
    x, y = tensor(torch, (3, 3, 6, 6), seed=4), labels(torch, (3, 9), 4)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2, weight_decay=1e-2)
    return train(torch, lambda step: nn.functional.cross_entropy(model(x), y), optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_depthwise_separable(torch: Any) -> Any:
    nn = torch.nn

    def separable(inner, outer, stride):
        return [
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer), nn.Hardswish(),
        ]  # fmt: skip

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), *separable(8, 16, 1), *separable(16, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip
    x, y = tensor(torch, (6, 3, 12, 12), seed=5), labels(torch, 6, 3)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    return train(torch, lambda step: nn.functional.cross_entropy(model(x), y), optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_transposed_decoder(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(6, 32), nn.Unflatten(1, (8, 2, 2)), nn.ELU(),
        nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1), nn.PReLU(6),
        nn.Upsample(scale_factor=2, mode="nearest"), nn.ConvTranspose2d(6, 3, 4, stride=2, padding=1), nn.Tanh(),
    )  # fmt: skip
    z, target = tensor(torch, (4, 6), seed=6), tensor(torch, (4, 3, 16, 16), seed=7).tanh()
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
    return train(torch, lambda step: nn.functional.huber_loss(model(z), target, delta=0.5), optimizer)


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_dcgan(torch: Any) -> Any:
    nn = torch.nn
    generator = nn.Sequential(
        nn.ConvTranspose2d(8, 12, 4, 1, 0, bias=False), nn.BatchNorm2d(12), nn.ReLU(True),
        nn.ConvTranspose2d(12, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 12, 4, 2, 1, bias=False), nn.BatchNorm2d(12), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(12, 1, 2, 1, 0, bias=False), nn.Sigmoid(), nn.Flatten(0),
    )  # fmt: skip

    def weights(m):
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(m.weight, 0.0, 0.02)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight, 1.0, 0.02)
            nn.init.zeros_(m.bias)

    generator.apply(weights)
    critic.apply(weights)
    loss = nn.BCELoss()
    for_critic = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for_generator = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    real = tensor(torch, (6, 1, 8, 8), seed=8).tanh()
    losses = []
    for _ in range(30):
        critic.zero_grad()
        on_real = loss(critic(real), torch.full((6,), 1.0))
        on_real.backward()
        fake = generator(torch.randn(6, 8, 1, 1))
        on_fake = loss(critic(fake.detach()), torch.full((6,), 0.0))
        on_fake.backward()
        for_critic.step()
        generator.zero_grad()
        fooled = loss(critic(fake), torch.full((6,), 1.0))
        fooled.backward()
        for_generator.step()
        losses.append([(on_real + on_fake).item(), fooled.item()])
    return losses


@case(rtol=1e-4, atol=1e-6, modes=("default",))
def case_vision_transformer(torch: Any) -> Any:
    nn = torch.nn

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Conv2d(3, 16, 4, 4)
            self.token = nn.Parameter(torch.zeros(1, 1, 16))
            self.position = nn.Parameter(torch.empty(1, 5, 16))
            nn.init.trunc_normal_(self.position, std=0.02)
            layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)
            self.head = nn.Linear(16, 3)

        def forward(self, x):
            x = self.embed(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
            return self.head(self.encoder(x)[:, 0])

    model = Patches()
    x, y = tensor(torch, (4, 3, 8, 8), seed=9), labels(torch, 4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    return train(torch, lambda step: nn.functional.cross_entropy(model(x), y), optimizer, after=scheduler.step)
