#!/usr/bin/env python3
"""PyTorch's eager training steps of the models that muster trains, for comparison on the same GPU: JSON lines with items
per second, from the median of the steps. Needs PyTorch with CUDA; no data, no network.

    tests/gpu/torch_steps.py [gpt2-small] [resnet50]
"""
import json
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, seq, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocabulary=50257, seq=1024, width=768, heads=12, layers=12):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(seq, width)
        self.blocks, self.last = nn.Sequential(*[Block(width, heads) for _ in range(layers)]), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        return self.head(self.last(self.blocks(self.tokens(x) + self.places.weight[: x.shape[1]])))


def gpt2_small():
    model = Gpt2().cuda()
    x, y = torch.randint(0, 50257, (2, 8, 1024), device="cuda")
    loss = lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    return loss, torch.optim.AdamW(model.parameters(), lr=3e-4), 8 * 1024


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        conv = lambda a, b, k, s: nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b))
        self.body = nn.Sequential(conv(channels, width, 1, 1), nn.ReLU(), conv(width, width, 3, stride), nn.ReLU(), conv(width, out, 1, 1))
        self.skip = nn.Identity() if channels == out and stride == 1 else conv(channels, out, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet50(batch=128):
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage and not block else 1))
            channels = 256 << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    model = nn.Sequential(*layers).cuda()
    x, y = torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    return (lambda: F.cross_entropy(model(x), y)), optimiser, batch


def steps(make, warmup=10, count=30):
    loss, optimiser, items = make()
    times = []
    for step in range(warmup + count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            value = loss()
        value.backward()
        optimiser.step()
        end.record()
        end.synchronize()
        if step >= warmup:
            times.append(begin.elapsed_time(end))
    middle = statistics.median(times)
    return {"step_ms": round(middle, 3), "items_per_s": round(items / middle * 1e3), "steps": count, "loss": value.item()}


models = {"gpt2-small": gpt2_small, "resnet50": resnet50}
for name in sys.argv[1:] or models:
    print(json.dumps({"model": name, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(), **steps(models[name])}), flush=True)
    torch.cuda.empty_cache()
