"""A small data-parallel training on Gloo, and three ways to break one rank of it.

BREAK=<hang|exception|mismatch>@STEP in the environment breaks the rank BREAK_RANK.
"""

import datetime
import logging
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

DUMP_AFTER_S = 8.0

rank = int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger(f"train.rank{rank}")
last = time.monotonic()


def record():
    """Writes the flight recorder once no step has ended for a while: Gloo has no watchdog that does."""
    while time.monotonic() - last < DUMP_AFTER_S:
        time.sleep(0.5)
    torch._C._distributed_c10d._dump_fr_trace_file(rank, backend="gloo")
    log.info("flight recorder written")


def load(step):
    """A batch; a rank that is to hang waits here for data that never come."""
    generator = torch.Generator().manual_seed(step * world + rank)
    how, _, at = os.environ.get("BREAK", "").partition("@")
    broken = how if at and int(at) == step and rank == int(os.environ["BREAK_RANK"]) else ""
    if broken == "hang":
        time.sleep(3600)
    batch = torch.randn(64, 128, generator=generator)
    if broken == "exception":
        batch = torch.randn(64, 100, generator=generator)
    return batch, torch.randint(0, 10, (64,), generator=generator), broken


def main():
    global last
    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=float(os.environ.get("TIMEOUT_S", "120")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    log.info("torch %s, rank %d of %d, process %d", torch.__version__, rank, world, os.getpid())
    last = time.monotonic()
    threading.Thread(target=record, daemon=True).start()
    for step in range(100_000):
        begun = time.monotonic()
        batch, labels, broken = load(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        # Accuracy by class is summed over all ranks; the broken program forgets two of the ten classes.
        hits = torch.zeros(8 if broken == "mismatch" else 10)
        dist.all_reduce(hits)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        time.sleep(0.1)
        last = time.monotonic()
        if step % 5 == 0:
            log.info("step %d loss %.4f time %.3f s", step, mean.item() / world, last - begun)


main()
