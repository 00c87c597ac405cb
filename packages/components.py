"""Lists what is inside the program: a CycloneDX document, and the licence texts of every dependency.

    components.py --machine x86_64|aarch64 --sbom FILE --licences FILE

A dependency without a licence text of its own gets the standard one from packages/licences; one for which there is none either ends it.
"""

import argparse
import datetime
import html
import importlib.metadata
import importlib.util
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

MACHINES = ("x86_64", "aarch64")
# The probe for each machine, and the worker that it carries, are inside the console for any machine.
INSIDE = ("muster-probe", "muster-gpu")
PROGRAMS = {"muster", *INSIDE}
COMPILERS = {"x86_64": "cc", "aarch64": "aarch64-linux-gnu-gcc"}
STANDARD = pathlib.Path(__file__).resolve().parent / "licences"
TEXT = re.compile(r"^(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
# Words that the whole text of a licence has, and neither its name nor a link to it.
WORDS = {
    "0BSD": "permission to use, copy, modify, and/or distribute this software",
    "Apache-2.0": "terms and conditions for use, reproduction, and distribution",
    "Apache-2.0 WITH LLVM-exception": "llvm exceptions to the apache 2.0 license",
    "BlueOak-1.0.0": "each contributor licenses you to do everything with this software",
    "BSD-2-Clause": "redistribution and use in source and binary forms",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "BSL-1.0": "boost software license - version 1.0",
    "GPL-3.0-or-later WITH GCC-exception-3.1": "gcc runtime library exception",
    "ISC": "permission to use, copy, modify, and",
    "LGPL-2.1-or-later": "gnu lesser general public license version 2.1",
    "MIT": "permission is hereby granted, free of charge",
    "MIT-0": "permission is hereby granted, free of charge",
    "MPL-2.0": "covered software is provided under this license on an",
    "Unicode-3.0": "unicode license v3",
    "Unlicense": "this is free and unencumbered software",
    "Zlib": "this software is provided 'as-is', without any express or implied warranty",
}


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def platforms(machine):
    """The three programs with the targets that they are built for."""
    probes = [(program, f"{of}-unknown-linux-gnu") for program in INSIDE for of in MACHINES]
    return [("muster", f"{machine}-unknown-linux-musl"), *probes]


def plain(page):
    """What a page says, without its tags."""
    lines = html.unescape(re.sub(r"<[^>]+>", "", page)).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def runtime():
    """What the linkers add to the programs."""
    rust = pathlib.Path(said("rustc", "--print", "sysroot").strip(), "share/doc/rust/COPYRIGHT-library.html")
    spec = importlib.util.find_spec("ziglang")
    if not rust.is_file() or spec is None:
        sys.exit(f"{rust if spec else 'ziglang'} is missing: licences of what is linked in come with it")
    zig = pathlib.Path(spec.origin).parent
    version = re.search(r'"(.+)"', (zig / "lib/libc/musl/src/internal/version.h").read_text())[1]
    own = lambda *files: [(file, (zig / file).read_text().strip()) for file in files]
    found = [
        ("rust-std", said("rustc", "--version").split()[1], "MIT OR Apache-2.0", "in all programs", [(rust.name, plain(rust.read_text()))]),
        ("musl", version, "MIT", "in the console", own("lib/libc/musl/COPYRIGHT")),
        ("libunwind", f"of Zig {importlib.metadata.version('ziglang')}", "Apache-2.0 WITH LLVM-exception", "in the console and the GPU workers", own("lib/libunwind/LICENSE.TXT")),
        ("compiler-rt", f"of Zig {importlib.metadata.version('ziglang')}", "MIT", "in the console and the GPU workers", own("LICENSE")),
    ]
    libraries = {}
    for machine, compiler in COMPILERS.items():
        library = pathlib.Path(said(compiler, "-print-file-name=libc.so.6").strip())
        glibc = re.search(rb"stable release version ([0-9.]*[0-9])", library.read_bytes())[1].decode()
        libraries.setdefault(("glibc", glibc, "LGPL-2.1-or-later"), []).append(machine)
        libraries.setdefault(("libgcc", said(compiler, "-dumpfullversion").strip(), "GPL-3.0-or-later WITH GCC-exception-3.1"), []).append(machine)
    for (name, version, licence), machines in libraries.items():
        where = f"linked statically into the probe for {' and '.join(machines)}"
        if name == "glibc":
            where += "; sources and build of the probe are in muster's repository"
        found.append((name, version, licence, where, own("lib/libc/glibc/LICENSES") if name == "glibc" else []))
    return [dict(zip(("name", "version", "license", "where", "texts"), part)) for part in found]


def metadata(machine):
    targets = sorted({target for _, target in platforms(machine)})
    return json.loads(said("cargo", "metadata", "--locked", "--format-version", "1", *(f"--filter-platform={target}" for target in targets)))


def built(machine):
    """Names and versions that cargo builds into the programs, with the features that these ask for: metadata also has optional packages that nobody asks for."""
    found = set()
    for program, target in platforms(machine):
        lines = said("cargo", "tree", "--locked", "--package", program, "--target", target, "--edges", "normal", "--prefix", "none", "--format", "{p}")
        found |= {tuple(line.split()[:2]) for line in lines.splitlines() if line}
    return found


def reached(data, machine):
    """Packages that the programs are made of, and who needs whom; what only builds or tests is none of it."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    names = {package["id"]: (package["name"], "v" + package["version"]) for package in data["packages"]}
    inside = built(machine)
    todo = [package["id"] for package in data["packages"] if package["name"] in PROGRAMS]
    needs = {}
    while todo:
        at = todo.pop()
        if at not in needs:
            deps = [dep for dep in nodes[at]["deps"] if names[dep["pkg"]] in inside]
            needs[at] = sorted(dep["pkg"] for dep in deps if any(kind["kind"] is None for kind in dep["dep_kinds"]))
            todo += needs[at]
    lost = inside - {names[at] for at in needs}
    if lost:
        sys.exit(f"cargo builds them in and metadata does not lead to them: {sorted(lost)}")
    return needs


def checksums():
    text = pathlib.Path("Cargo.lock").read_text()
    entry = re.compile(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"')
    return {(name, version): digest for name, version, digest in entry.findall(text)}


def component(package, sums):
    purl = f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"
    found = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    digest = sums.get((package["name"], package["version"]))
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return found


def document(packages, needs, sums, linked):
    ref = {at: component(packages[at], sums)["bom-ref"] for at in needs}
    main = next(at for at in needs if packages[at]["name"] == "muster")
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), datetime.timezone.utc)
    parts = [component(packages[at], sums) for at in needs if at != main]
    parts += [
        {"type": "library", "bom-ref": f"{part['name']} {part['version']}", "name": part["name"], "version": part["version"], "description": part["where"],
         "licenses": [{"expression": part["license"]}]}
        for part in linked
    ]
    top = dict(component(packages[main], sums), type="application")
    # The probe and its worker lie inside the console without being dependencies of it.
    inside = {ref[at] for at in needs if packages[at]["name"] in PROGRAMS and at != main}
    edges = {ref[at]: {ref[dep] for dep in needs[at]} for at in needs}
    edges[ref[main]] |= inside
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(sorted(ref.values())) + time.isoformat())),
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": top},
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
        "dependencies": [{"ref": at, "dependsOn": sorted(edges[at])} for at in sorted(edges)],
    }


def texts(package):
    """Licence files of a package: its own, and those of the C sources that it brings."""
    folder = pathlib.Path(package["manifest_path"]).parent
    for path in sorted(folder.rglob("*")):
        if path.is_file() and TEXT.match(path.name) and path.suffix.lower() in ("", ".md", ".txt", ".mit", ".apache") and path.stat().st_size:
            yield path.relative_to(folder).as_posix(), path.read_text(errors="replace").strip()


def choices(expression):
    """The sets of licences of which one is enough, of an SPDX expression; old ones have a slash for OR."""
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))

    def one():
        word = words.pop(0)
        if word != "(":
            return [{word}]
        found = either()
        words.pop(0)
        return found

    def both():
        found = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            found = [a | b for a, b in itertools.product(found, one())]
        return found

    def either():
        found = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            found = found + both()
        return found

    return either()


def present(found):
    """Licences whose whole text is among these."""
    said = [re.sub(r"[\s*#]+", " ", text.lower().replace("\u2018", "'").replace("\u2019", "'")) for text in found]
    return {licence for licence, words in WORDS.items() if any(words in text for text in said)}


def standard(licence):
    """The standard text of a licence, with that of its exception; nothing where one is not in packages/licences."""
    files = [STANDARD / f"{part}.txt" for part in licence.split(" WITH ")]
    return "\n\n".join(file.read_text().strip() for file in files) if all(file.is_file() for file in files) else None


def licences(foreign, linked):
    """One text for all packages that have it word by word; and the packages that have the standard one."""
    holders = tomllib.loads((STANDARD / "holders.toml").read_text())
    by_text, filled, bare = {}, [], []
    for part in linked + [dict(package, texts=list(texts(package))) for package in foreign]:
        name, where = f"{part['name']} {part['version']} ({part['license']})", part.get("repository") or part.get("where")
        for path, text in part["texts"]:
            by_text.setdefault(text, []).append(f"{name}: {path}")
        wanted, held = choices(part["license"]), present(text for _, text in part["texts"])
        if any(choice <= held for choice in wanted):
            continue
        added = {licence: standard(licence) for licence in sorted(set().union(*wanted) - held)}
        added = {licence: text for licence, text in added.items() if text}
        if not any(choice <= held | added.keys() for choice in wanted):
            bare.append(f"{name}, {where}")
            continue
        by = holders.get(part["name"]) or part.get("authors") or [f"the contributors of {where}"]
        for licence, text in added.items():
            by_text.setdefault(text, []).append(f"{name}: standard text of {licence}, as it brings none. Copyright (c) {'; '.join(by)}")
        filled.append(part["name"])
    if bare:
        sys.exit("\n".join(["neither the package nor packages/licences has the text of its licence; put that there, named ID.txt after its SPDX identifier:", *bare]))
    lines = [f"{part['name']} {part['version']} ({part['license']}), {part['where']}" for part in linked]
    blocks = ["What muster is made of, beside itself, and under which terms.\n\nBy the linker:\n" + "\n".join(lines) + "\n"]
    for text, users in sorted(by_text.items(), key=lambda item: item[1]):
        blocks.append("=" * 100 + "\n" + "\n".join(users) + "\n" + "-" * 100 + "\n" + text + "\n")
    return "\n".join(blocks), filled


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--machine", required=True, choices=MACHINES)
    options.add_argument("--sbom", required=True)
    options.add_argument("--licences", required=True)
    options = options.parse_args()
    data, linked = metadata(options.machine), runtime()
    packages = {package["id"]: package for package in data["packages"]}
    needs = reached(data, options.machine)
    foreign = sorted((packages[at] for at in needs if packages[at]["source"]), key=lambda p: (p["name"], p["version"]))
    unnamed = [package["name"] for package in foreign if not package["license"]]
    if unnamed:
        sys.exit(f"without a licence in the terms of SPDX: {', '.join(unnamed)}")
    text, filled = licences(foreign, linked)
    pathlib.Path(options.licences).write_text(text)
    bom = document(packages, needs, checksums(), linked)
    pathlib.Path(options.sbom).write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")
    filled = [package["name"] for package in foreign if package["name"] in filled]
    print(f"{len(foreign)} packages of others, {len(filled)} of them with the standard text of their licence: {', '.join(filled)}", file=sys.stderr)


main()
