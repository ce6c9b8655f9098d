"""The losses of tests/end_to_end/ddp.net by DistributedDataParallel on two
processes:

    ddp.py SINTER > tests/end_to_end/ddp.losses
    ddp.py SINTER --sync > tests/end_to_end/ddp_sync.losses

The processes start with the weights that sinter draws and take the samples of
a shard each, in the order of docs/numerics.md.  A line is the mean of both
losses of a step.

--sync: with batch_norm over both processes.  PyTorch's SyncBatchNorm refuses
tensors on the CPU, so Synchronized computes its formulas, and the gradient
follows from that of all_reduce.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
import torch.distributed.nn
import torch.multiprocessing
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "end_to_end"))
from order import order  # noqa: E402

SAMPLES, BATCH, STEPS, RANKS = 128, 64, 20, 2


def images():
    """As idx_data of expect.sh draws them."""
    x, out = 42, bytearray()
    for _ in range(SAMPLES * 144):
        x = x * 16807 % 2147483647
        out.append(x // 65536 % 256)
    data = torch.frombuffer(out, dtype=torch.uint8).reshape(SAMPLES, 1, 12, 12)
    return (data.double() - 128) / 64


def weights(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, t in header.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            out[name] = torch.frombuffer(
                bytearray(data[a:b]), dtype=torch.float32).reshape(t["shape"])
    return out


class Synchronized(nn.BatchNorm2d):
    def forward(self, x):
        count = RANKS * x.numel() // x.shape[1]

        def mean(of):
            return torch.distributed.nn.all_reduce(
                of.sum((0, 2, 3), keepdim=True)) / count
        centred = x - mean(x)
        y = centred / torch.sqrt(mean(centred * centred) + self.eps)
        return y * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)


def network(start, norm):
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), norm(8), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1, bias=False),
        norm(16), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Linear(16, 10)).double()
    with torch.no_grad():
        for i, layer in (0, "first"), (4, "second"):
            conv = start[layer + ".conv_1.weight"].permute(0, 3, 1, 2)
            net[i].weight.copy_(conv)
        net[9].weight.copy_(start["head.weight"])
        net[9].bias.copy_(start["head.bias"])
    return net


def samples(step, rank):
    """Those of a rank: a batch of two steps in an epoch."""
    each = SAMPLES // BATCH
    first = step % each * BATCH + rank * BATCH // RANKS
    return [order(0, step // each, p, SAMPLES)
            for p in range(first, first + BATCH // RANKS)]


def train(rank, start, losses, norm):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29517")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    data, labels = images(), torch.arange(SAMPLES) % 8
    net = nn.parallel.DistributedDataParallel(network(start, norm))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9,
                                nesterov=True, weight_decay=5e-4)
    for step in range(STEPS):
        chosen = samples(step, rank)
        loss = nn.functional.cross_entropy(net(data[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[rank, step] = loss.detach()


def main():
    sinter = os.path.abspath(sys.argv[1])
    net = os.path.join(ROOT, "tests", "end_to_end", "ddp.net")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["sh", "-ec", f". {ROOT}/tests/end_to_end/expect.sh; cd {folder}; "
             f"idx_data data {SAMPLES}; {sinter} build {net} -o ddp; "
             "./ddp --data=data --init-only --out=o --quiet"], check=True,
            env={**os.environ, "SINTER_SOURCE": ROOT}, stdout=sys.stderr)
        start = weights(folder + "/o/step-00000000.safetensors")
    losses = torch.zeros(RANKS, STEPS, dtype=torch.double).share_memory_()
    norm = Synchronized if "--sync" in sys.argv else nn.BatchNorm2d
    torch.multiprocessing.spawn(train, (start, losses, norm), nprocs=RANKS)
    for step in range(STEPS):
        print("%.9g" % losses[:, step].mean().item())


if __name__ == "__main__":
    main()
