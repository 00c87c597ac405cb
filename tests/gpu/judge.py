"""What the steps of h200.sh found: one JSON document, one line per finding, exit code 2 when something is not right."""

import datetime
import json
import pathlib
import sys

# From docs/GPU.md (H100 measured, the others expected): what a good card of the kind shows, by metric without GPU and engine, in units of the wire contract.
RANGES = {
    "H200": {
        "gpu-stream/copy": (4.0e12, 4.8e12),
        "gpu-stream/read": (4.0e12, 4.8e12),
        "gpu-stream/triad": (4.0e12, 4.8e12),
        "gpu-stream/latency": (400, 1000),
        "gpu-stream/l2-read": (4.8e12, 1.2e13),
        "gpu-stream/l2-latency": (100, 300),
        "gpu-overlap/overlap-host-to-device": (0.85, 1.05),
        "gpu-overlap/overlap-device-to-device": (0.5, 1.05),
        "gpu-comm-overlap/overlap-matmul": (0.5, 1.05),
        "gpu-comm-overlap/overlap-mul": (0.4, 1.05),
        "gpu-copy-bw/host-to-device": (48e9, 64e9),
        "gpu-copy-bw/device-to-host": (48e9, 64e9),
        "kernel-launch/event": (2e3, 10e3),
        "kernel-launch/wall": (4e3, 20e3),
        "kernel-launch/call": (1e3, 6e3),
        "kernel-launch/graph-node": (0.6e3, 3e3),
        "gemm-flops/bf16": (2.5e14, 9.9e14),
        "gemm-flops/fp16": (2.5e14, 9.9e14),
        "gemm-flops/tf32": (1.4e14, 5.0e14),
        "gemm-flops/int8": (5.5e14, 1.98e15),
        "gemm-flops/bf16-wgmma": (6.0e14, 9.9e14),
        "gemm-flops/fp16-wgmma": (6.0e14, 9.9e14),
        "gemm-flops/tf32-wgmma": (3.0e14, 5.0e14),
        "gemm-flops/fp8-wgmma": (1.2e15, 1.98e15),
        "gemm-flops/int8-wgmma": (1.2e15, 1.98e15),
        "gemm-flops/fp32": (2.5e13, 6.7e13),
        "gemm-flops/fp64": (1.5e13, 6.7e13),
    },
    "H100": {
        "gpu-stream/copy": (2.6e12, 3.35e12),
        "gpu-copy-bw/host-to-device": (48e9, 64e9),
        "gpu-copy-bw/device-to-host": (48e9, 64e9),
        "gemm-flops/bf16": (2.5e14, 9.9e14),
        "gemm-flops/fp16": (2.5e14, 9.9e14),
        "gemm-flops/tf32": (1.4e14, 5.0e14),
        "gemm-flops/int8": (5.5e14, 1.98e15),
        "gemm-flops/bf16-wgmma": (6.0e14, 9.9e14),
        "gemm-flops/fp16-wgmma": (6.0e14, 9.9e14),
        "gemm-flops/tf32-wgmma": (3.0e14, 5.0e14),
        "gemm-flops/fp8-wgmma": (1.2e15, 1.98e15),
        "gemm-flops/int8-wgmma": (1.2e15, 1.98e15),
        "gemm-flops/fp32": (2.5e13, 6.7e13),
    },
    "A100": {
        "gpu-stream/copy": (1.2e12, 2.04e12),
        "gpu-copy-bw/host-to-device": (21e9, 32e9),
        "gpu-copy-bw/device-to-host": (21e9, 32e9),
        "gemm-flops/bf16": (1.8e14, 3.2e14),
        "gemm-flops/fp16": (1.8e14, 3.2e14),
        "gemm-flops/tf32": (0.9e14, 1.6e14),
        "gemm-flops/int8": (3.6e14, 6.3e14),
    },
}
# Medians of two passes are this close, as the smaller over the larger.
REPEATABLE = 0.99
# What is measured in the same run on the same card: a metric, what it is held against, and at least how much of that it is.
# Bytes of a copy are counted twice by gpu-stream and once by gpu-copy-bw.
RATIOS = [
    ("gpu-stream/copy", "gpu-copy-bw/device-to-device", 2, 0.93),
    ("gemm-flops/bf16", "cublaslt", 1, 0.40),
    ("gemm-flops/bf16-wgmma", "cublaslt", 1, 0.85),
    ("gpu-burn/bf16-wgmma", "cublaslt", 1, 0.85),
]
# The end of a fact about a training, and at least how much of PyTorch's eager rate on the same card it reaches.
TORCH = {"gpt2-small_bf16_train": 0.70, "gpt2-small_bf16_train.cublaslt": 0.85, "resnet50_bf16_train": 0.50}
# Units whose results are the same in machine code and in code that the driver compiled.
EXACT = ("ffma", "dfma", "imad")


def value(fact):
    datum = fact["reading"].get("value") if isinstance(fact["reading"], dict) else None
    return next(iter(datum.values())) if isinstance(datum, dict) else None


class Steps:
    def __init__(self, folder):
        self.documents, self.ended = {}, {}
        for path in sorted(folder.glob("*.rc")):
            self.ended[path.stem] = int(path.read_text())
            try:
                self.documents[path.stem] = json.loads(path.with_suffix(".json").read_text())
            except ValueError:
                self.documents[path.stem] = None

    def benchmarks(self, step):
        return (self.documents.get(step) or {}).get("benchmarks", [])

    def medians(self, step):
        return {s["metric"]: s["median"] for b in self.benchmarks(step) for s in b["series"] if s["median"]}

    def facts(self, step):
        return {f["key"]: value(f) for b in self.benchmarks(step) for f in b["facts"] if value(f) is not None}


def rows(facts):
    """Digests of every multiprocessor, by GPU, unit, rounds and seed."""
    for key, text in facts.items():
        words = key.split(".")
        if len(words) == 6 and words[0] == "gpu" and words[2] == "sm":
            yield tuple(words[i] for i in (1, 3, 4, 5)), [share.split(":")[1] for share in text.split()]


def ended(steps):
    for step in steps.ended:
        for one in steps.benchmarks(step):
            outcome = one["outcome"]
            right = outcome == "done" or "not_applicable" in outcome
            yield f"{step}: {one['benchmark']}", right, outcome if outcome == "done" else json.dumps(outcome)
    for tool in ("memcheck", "racecheck"):
        if tool in steps.ended:
            code = steps.ended[tool]
            yield f"compute-sanitizer {tool}", code == 0, f"exit code {code}"


def multiprocessors(steps):
    parts, fallback = steps.facts("parts"), steps.facts("fallback")
    own = dict(rows(parts))
    for key, digests in own.items():
        odd = len(set(digests)) > 1
        if odd:
            yield f"multiprocessors {'.'.join(key)}", False, "digests differ"
    yield "multiprocessors", bool(own), f"{len(own)} rows of digests"
    engines = sorted({text for key, text in fallback.items() if key.endswith(".engine")})
    if engines and engines != ["own-ptx"]:
        yield "fallback", True, f"not forced: the driver loaded {engines} all the same"
        return
    same = [(key, digests) for key, digests in rows(fallback) if key[1] in EXACT and key in own]
    wrong = [key for key, digests in same if set(digests) != set(own[key])]
    yield "fallback", not wrong, f"{len(same)} rows of digests are those of the machine code, {len(wrong)} are not"


def pages(steps):
    for key, text in steps.facts("parts").items():
        if key.endswith(".pages"):
            yield key, text.endswith(" bad=0"), text


def ranges(steps, card):
    known = next((limits for name, limits in RANGES.items() if name in card), None)
    if known is None:
        yield "ranges", True, f"none are known for {card}"
        return
    for metric, median in steps.medians("first").items():
        limits = known.get(metric.split("@")[0].rsplit(":", 1)[0])
        if limits:
            low, high = limits
            yield f"range {metric}", low <= median <= high, f"{median:.4g}, expected {low:.3g} to {high:.3g}"


def name(metric):
    return metric.split("@")[0].rsplit(":", 1)[0]


def ratios(steps, card):
    if not any(name in card for name in RANGES):
        return
    medians = {**steps.medians("burn"), **steps.medians("first")}
    # The vendor's products of bf16, whatever its version: the fastest of them.
    vendor = [v for metric, v in medians.items() if "cublaslt" in metric and "bf16" in metric]
    for one, other, times, least in RATIOS:
        against = vendor if other == "cublaslt" else [v for metric, v in medians.items() if name(metric) == other]
        for metric, median in medians.items():
            if name(metric) == one and "cublaslt" not in metric and against:
                ratio = median / (times * max(against))
                yield f"ratio {metric} to {other}", ratio >= least, f"{ratio:.3f}, at least {least} expected"


def torch(steps, folder):
    """The training's rate over PyTorch's."""
    lines = (folder / "torch.json").read_text().splitlines() if (folder / "torch.json").exists() else []
    theirs = {line["model"]: line["items_per_s"] for line in map(json.loads, lines)}
    for key, text in steps.facts("training").items():
        for training, least in TORCH.items():
            model = training.split("_")[0]
            if key.endswith(f".{training}") and model in theirs and "throughput=" in text:
                rate = float(text.split("throughput=")[1].split()[0])
                ratio = rate / theirs[model]
                yield f"{key} to PyTorch", ratio >= least, f"{ratio:.3f} of {theirs[model]} items/s, at least {least} expected"


def repeatability(steps):
    second = steps.medians("second")
    for metric, first in steps.medians("first").items():
        if metric in second:
            ratio = min(first, second[metric]) / max(first, second[metric])
            yield f"repeatability {metric}", ratio >= REPEATABLE, f"{ratio:.4f}"


def main():
    steps, out, seconds = Steps(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    card = next((t for k, t in steps.facts("parts").items() if k.endswith(".name")), "no GPU")
    found = [*ended(steps), *multiprocessors(steps), *pages(steps), *ranges(steps, card), *ratios(steps, card), *repeatability(steps)]
    found += torch(steps, pathlib.Path(sys.argv[1]))
    looked = {f["key"]: value(f) for c in (steps.documents.get("inventory") or {}).get("collectors", []) for f in c["facts"]}
    document = {
        "schema": "muster.gpu-reference",
        "version": 1,
        "date": datetime.date.today().isoformat(),
        "card": card,
        "driver": looked.get("driver.version"),
        "seconds": seconds,
        "findings": [{"name": name, "right": right, "said": said} for name, right, said in found],
        "medians": {step: steps.medians(step) for step in ("first", "second", "parts", "functions", "burn", "training", "fallback")},
        "facts": {step: steps.facts(step) for step in ("parts", "first", "functions", "burn", "training", "fallback")},
        "nvml": {key: text for key, text in looked.items() if key.startswith("nvml")},
    }
    out.write_text(json.dumps(document, indent=1) + "\n")
    wrong = [(name, said) for name, right, said in found if not right]
    for name, said in wrong:
        print(f"WRONG {name}: {said}")
    print(f"{card}: {len(found) - len(wrong)} of {len(found)} findings are right, {seconds} s, {out}")
    sys.exit(2 if wrong else 0)


main()
