"""Random mutants of the code that decides, keeps and carries, and whether its tests notice: `tests/campaign mutants`.

cargo-mutants says which there are; each is made in a work tree of its own and tried with the unit tests of its area, and if those pass,
with the area's tests of whole sentences and files. What only a test of all of muster would notice counts as missed.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys

ANALYSIS = "console/analysis/src"
# Whole bundles of logs are read by the package that imports them.
BUNDLES = ["triage"]
# Package, files, modules of the unit tests (none: all of them), and the tests, by package, that what those miss is tried with.
AREAS = {
    "wire": ("muster-wire", ["probe/wire/src/**/*.rs"], [], {}),
    "store": (
        "muster-store",
        ["console/store/src/**/*.rs"],
        [],
        {"muster-store": ["access", "damage", "ledger", "contents", "keeping", "overview", "golden"]},
    ),
    "decision": ("muster-analysis", [f"{ANALYSIS}/decide/*.rs", f"{ANALYSIS}/rounds.rs"], ["decide::", "rounds::"], {"muster-analysis": ["decide"]}),
    "logs": ("muster-logs", ["console/logs/src/*.rs"], [], {"muster-logs": ["rules"], "muster-import": BUNDLES}),
    "watch": ("muster-watch", ["console/watch/src/**/*.rs"], [], {"muster-watch": ["detector"]}),
    "triage": ("muster-triage", ["console/triage/src/**/*.rs"], [], {"muster-triage": ["words"], "muster-import": BUNDLES}),
}
# Most memory of a command, in bytes: a change may make a loop that takes it without end.
MEMORY = 12 << 30
# The analysis is optimised for its simulated fleets: a mutant is built once and run once. The simulated jobs of `watch` take minutes without.
PLAIN = ["--config=profile.dev.package.muster-analysis.opt-level=0"]


def mutants(tree, area):
    """Every mutant that cargo-mutants can make of an area: file and change, by name."""
    package, files, _, _ = AREAS[area]
    words = ["cargo", "mutants", "--list", "--json", "--diff", "--package", package]
    words += [word for file in files for word in ("--file", file)]
    listed = json.loads(subprocess.run(words, cwd=tree, check=True, stdout=subprocess.PIPE).stdout)
    return {one["name"]: (one["file"], one["diff"]) for one in listed}


def ends(words, tree, env, log, seconds):
    """Exit status of a command; that of a failure if it runs too long, when it is killed with all that it started."""
    with subprocess.Popen(words, cwd=tree, env=env, stdout=log, stderr=log, start_new_session=True) as child:
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return 1


def noticed_by(tree, area, file, log, seconds):
    """What fails of the area's build and tests as the tree is now, those of the module of `file` first; `nothing` if all of it holds."""
    package, _, modules, further = AREAS[area]
    env = os.environ | {"CARGO_TARGET_DIR": str(tree.parent / "build"), "CARGO_INCREMENTAL": "1", "CARGO_PROFILE_DEV_DEBUG": "0"}
    of = ["cargo", "test", "--offline", *PLAIN, "--package"]
    cargo = [*of, package]
    if ends([*cargo, "--lib", "--no-run"], tree, env, log, 1800) != 0:
        return "compiler"
    # Its own module's tests first: those of another may take minutes.
    own = [module for module in modules if f"/src/{module.removesuffix('::')}" in file]
    groups = [own, [module for module in modules if module not in own]] if modules else []
    for some in filter(None, groups) if groups else [[]]:
        if ends([*cargo, "--lib", "--", *some], tree, env, log, seconds) != 0:
            return "unit tests"
    for beside, tests in further.items():
        cargo = [*of, beside, *(word for test in tests for word in ("--test", test))]
        if ends([*cargo, "--no-run"], tree, env, log, 1800) == 0 and ends(cargo, tree, env, log, seconds) != 0:
            return "further tests"
    return "nothing"


def outcome(tree, area, change, log, seconds):
    """What notices a change of a file: the compiler, the unit tests, the further tests or nothing."""
    file, diff = change
    subprocess.run(["patch", "--silent", "--forward", "--fuzz=0", file], cwd=tree, input=diff, text=True, check=True)
    try:
        return noticed_by(tree, area, file, log, seconds)
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--", file], cwd=tree, check=True)


def main():
    ask = argparse.ArgumentParser(prog="tests/campaign mutants")
    ask.add_argument("--count", type=int, default=50, help="mutants of each area")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--timeout", type=int, default=300, help="seconds of the tests of a mutant")
    ask.add_argument("--areas", default=",".join(AREAS))
    asked = ask.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    place = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve() / "mutants"
    tree = place / "tree"
    subprocess.run(["git", "worktree", "prune"], check=True)
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", tree, "HEAD"], check=True, stdout=sys.stderr)
    subprocess.run(["cargo", "fetch", "--quiet"], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", head], cwd=tree, check=True)
    print("| area | mutants there are | tried | do not compile | noticed by unit tests | by further tests | missed | share noticed |")
    print("|---|---|---|---|---|---|---|---|")
    noticed, survivors = 0, []
    for area in asked.areas.split(","):
        every = mutants(tree, area)
        chosen = random.Random(f"{asked.seed} {area}").sample(sorted(every), min(asked.count, len(every)))
        found = collections.Counter()
        with open(place / f"{area}.log", "w") as log:
            # Where the code as it is does not build or pass, every change would count as noticed.
            if (fails := noticed_by(tree, area, "", log, asked.timeout)) != "nothing":
                sys.exit(f"without a change {area} fails by its {fails}: see {log.name}")
            for at, name in enumerate(chosen):
                by = outcome(tree, area, every[name], log, asked.timeout)
                found[by] += 1
                survivors += [name] if by == "nothing" else []
                print(f"{at + 1} of {len(chosen)}: {by}: {name}", file=sys.stderr, flush=True)
        here = found["unit tests"] + found["further tests"]
        share = f"{100 * here / (here + found['nothing']):.0f} %" if here + found["nothing"] else ""
        row = [area, len(every), len(chosen), found["compiler"], found["unit tests"], found["further tests"], found["nothing"], share]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        noticed += here
    print()
    for name in survivors:
        print(f"- `{name}`")
    if noticed < 0.85 * (noticed + len(survivors)):
        sys.exit(1)


main()
