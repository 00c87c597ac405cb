"""Lists what is inside the program: a CycloneDX document, and the licence texts of every dependency.

    components.py --sbom FILE --licences FILE
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

PLATFORM = "x86_64-unknown-linux-musl"
# What is shipped: the console, the probe it carries, and the worker that the probe carries.
PROGRAMS = {"muster", "muster-probe", "muster-gpu"}
TEXT = re.compile(r"^(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)


def runtime():
    """What the linker adds to the programs: name, version, licence, and where it is."""
    said = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [
        ("rust-std", said("rustc", "--version")[1], "MIT OR Apache-2.0", "in all three programs"),
        ("musl", "as in Rust's target " + PLATFORM, "MIT", "in the console"),
        ("glibc", said("getconf", "GNU_LIBC_VERSION")[1], "LGPL-2.1-or-later", "linked statically into the probe; sources and build of the probe are in muster's repository"),
    ]


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def reached(data):
    """Packages that the programs are made of, and who needs whom; what only builds or tests is none of it."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    todo = [package["id"] for package in data["packages"] if package["name"] in PROGRAMS]
    needs = {}
    while todo:
        at = todo.pop()
        if at not in needs:
            deps = nodes[at]["deps"]
            needs[at] = sorted(dep["pkg"] for dep in deps if any(kind["kind"] is None for kind in dep["dep_kinds"]))
            todo += needs[at]
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


def document(packages, needs, sums):
    ref = {at: component(packages[at], sums)["bom-ref"] for at in needs}
    main = next(at for at in needs if packages[at]["name"] == "muster")
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    parts = [component(packages[at], sums) for at in needs if at != main]
    parts += [
        {"type": "library", "bom-ref": name, "name": name, "version": version, "description": where, "licenses": [{"expression": licence}]}
        for name, version, licence, where in runtime()
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


def licences(foreign):
    """One text for all packages that have it word by word."""
    by_text, without = {}, []
    for package in foreign:
        name = f"{package['name']} {package['version']}"
        found = list(texts(package))
        if not found:
            without.append(f"{name}: {package['license']}, {package['repository']}")
        for path, text in found:
            by_text.setdefault(text, []).append(f"{name} ({package['license']}): {path}")
    added = [f"{name} {version} ({licence}), {where}" for name, version, licence, where in runtime()]
    parts = ["What muster is made of, beside itself, and under which terms.\n\nBy the linker:\n" + "\n".join(added) + "\n"]
    for text, users in sorted(by_text.items(), key=lambda item: item[1]):
        parts.append("=" * 100 + "\n" + "\n".join(users) + "\n" + "-" * 100 + "\n" + text + "\n")
    if without:
        parts.append("=" * 100 + "\nPackages that name their licence without a copy of its text; that of Apache-2.0 is muster's own (LICENSE):\n" + "\n".join(without) + "\n")
    return "\n".join(parts), without


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sbom", required=True)
    options.add_argument("--licences", required=True)
    options = options.parse_args()
    data = metadata()
    packages = {package["id"]: package for package in data["packages"]}
    needs = reached(data)
    foreign = sorted((packages[at] for at in needs if packages[at]["source"]), key=lambda p: (p["name"], p["version"]))
    unnamed = [package["name"] for package in foreign if not (package["license"] or package["license_file"])]
    if unnamed:
        sys.exit(f"without a licence: {', '.join(unnamed)}")
    text, without = licences(foreign)
    pathlib.Path(options.licences).write_text(text)
    bom = document(packages, needs, checksums())
    pathlib.Path(options.sbom).write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")
    print(f"{len(foreign)} packages of others, {len(without)} of them without a licence text", file=sys.stderr)


main()
