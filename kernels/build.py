#!/usr/bin/env python3
"""Compiles kernels/cu ahead of time with NVRTC and keeps kernels/prebuilt and its manifest true.

    kernels/build.py            rebuild kernels/prebuilt
    kernels/build.py --check    rebuild in memory and compare byte for byte with what is committed

Needs no GPU. The compilers are NVIDIA's wheels, unpacked below $MUSTER_CUDA (never committed):
    pip install --no-deps --target $MUSTER_CUDA/nvrtc-12.2 nvidia-cuda-nvrtc-cu12==12.2.140
    pip install --no-deps --target $MUSTER_CUDA/nvrtc-12.8 nvidia-cuda-nvrtc-cu12==12.8.93
    pip install --no-deps --target $MUSTER_CUDA/dis        nvidia-cuda-nvdisasm               (instruction counts)
Exit codes: 0 as committed, 2 something differs or a gate is broken, 3 skipped: the compilers are not there.
"""

import argparse
import ctypes
import glob
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PREBUILT = HERE / "prebuilt"
# Text for sm_90a is executed by tests only; everything else is shipped.
# Old compilers for old drivers: PTX ISA 8.2 loads from driver 535 on. sm_100a exists only from 12.8 on.
EVERYWHERE = ["memory", "burn", "gemm", "peer", "tape", "norm", "image", "product", "attention", "function", "convolve"]
TARGETS = [
    ("compute_80", "nvrtc-12.2", "ptx", EVERYWHERE),
    ("sm_80", "nvrtc-12.2", "cubin", EVERYWHERE),
    ("sm_90a", "nvrtc-12.2", "ptx", ["wgmma"]),
    ("sm_90a", "nvrtc-12.2", "cubin", [*EVERYWHERE, "wgmma"]),
    ("sm_100a", "nvrtc-12.8", "cubin", EVERYWHERE),
]
FLAGS = ["--std=c++17", "-default-device", "--fmad=true"]
# Ways of a convolution.
WAYS = ("", "_data", "_filter")
# Registers per thread at most, for the launch bounds of each kernel to hold; spills and stack are never allowed.
REGISTERS = {
    **{f"gemm_{kind}": 128 for kind in ("bf16", "fp16", "tf32", "int8")},
    **{"copy": 64, "burn_mma": 128, "gemm_f32": 160, "gemm_f64": 160, "burn_wgmma": 168},
    **{"convolve_bf16": 128, "convolve_filter_bf16": 128, "convolve_plain": 128, "convolve_filter_plain": 128},
    **{"product_bf16": 128, "product_f32": 128, "product_wgmma": 168},
    **{"attention": 168, "attention_queries": 200, "attention_keys": 255},
    **{f"wgmma_{kind}": 168 for kind in ("bf16", "fp16", "tf32", "fp8", "int8")},
    **{f"batch_{kind}": 128 for kind in ("f32", "half", "c32")},
    **{f"convolve{way}_f32": 96 for way in WAYS},
    **{f"convolve{way}_half": 128 for way in WAYS},
}
DEFAULT_REGISTERS = 64
# What a product by mma.sync moves.
TENSOR = {"LDGSTS.E.BYPASS": 4, "LDSM.16.M88.4": 12}
# What a product by wgmma moves.
BULK = {"UBLKCP": 3, "SYNCS.PHASECHK": 2}
# Waits for products, at most: a compiler that cannot tell sums from other registers waits after each of them.
WAITS = {"burn_wgmma": 1, "product_wgmma": 2, **{f"wgmma_{kind}": 2 for kind in ("bf16", "fp16", "tf32", "fp8", "int8")}}
# Instructions that must be in the machine code of a kernel, or the kernel measures something else.
SASS = {
    "copy": {"LDG.E.NA.128|LDG.E.128": 4, "STG.E.EF.128|STG.E.128": 4},
    "reread": {r"LDG.E.128.STRONG.GPU": 4},
    "burn_mma": {"HMMA.16816.F32.BF16": 64},
    "gemm_bf16": {"HMMA.16816.F32.BF16": 32, **TENSOR},
    "gemm_fp16": {r"HMMA.16816.F32\b(?!.BF16)": 32, **TENSOR},
    "gemm_tf32": {"HMMA.1688.F32.TF32": 32, **TENSOR},
    "gemm_int8": {"IMMA.16832.S8.S8": 32, **TENSOR},
    "reduce_peers": {"LDG.E.NA.128|LDG.E.128": 4, "STG.E.128": 4},
    "gather_peers": {"LDG.E.NA.128|LDG.E.128": 4, "STG.E.128": 4},
    "burn_wgmma": {"HGMMA.64x256x16.F32.BF16": 16},
    "wgmma_bf16": {"HGMMA.64x256x16.F32.BF16": 4, **BULK},
    "wgmma_fp16": {r"HGMMA.64x256x16.F32\b(?!.BF16)": 4, **BULK},
    "wgmma_tf32": {"HGMMA.64x256x8.F32.TF32": 4, **BULK},
    "wgmma_fp8": {"QGMMA.64x256x32.F32.E4M3.E4M3": 4, **BULK},
    "wgmma_int8": {"IGMMA.64x256x32.S8.S8": 4, **BULK},
    "product_bf16": {"HMMA.16816.F32.BF16": 32, **TENSOR},
    "convolve_bf16": {"HMMA.16816.F32.BF16": 32, "LDGSTS.E.BYPASS": 4, "LDSM.16.M88.4": 12},
    "convolve_filter_bf16": {"HMMA.16816.F32.BF16": 32, "LDGSTS.E.BYPASS": 4, "LDSM.16.MT88.4": 12},
    "convolve_plain": {"FFMA": 256},
    "convolve_filter_plain": {"FFMA": 256},
    "product_wgmma": {"HGMMA.64x256x16.F32.BF16": 4, **BULK},
    **{f"attention{part}": {"HMMA.16816.F32.BF16": 64} for part in ("", "_queries", "_keys")},
    **{name: {r"HMMA.16816.F32\b(?!.BF16)": 8, "LDSM.16.M88.4": 6} for name in ("batch_half", *(f"convolve{w}_half" for w in WAYS))},
    **{name: {"FFMA": 256} for name in ("batch_f32", *(f"convolve{w}_f32" for w in WAYS))},
    "batch_c32": {"FFMA": 1024},
    "burn_ffma": {"FFMA": 64},
    "burn_dfma": {"DFMA": 64},
    "burn_imad": {"IMAD": 64},
}


class Failed(Exception):
    """A sentence for the person who ran this."""


def library(home, version):
    found = glob.glob(str(home / version / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))
    return found[0] if found else None


def compile_one(nvrtc, name, target, kind):
    """Bytes of kernels/cu/NAME.cu for a target."""
    folder = HERE / "cu"
    source = (folder / f"{name}.cu").read_bytes()
    headers = sorted(folder.glob("*.cuh"))
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(headers))(*[h.read_bytes() for h in headers])
    names = (ctypes.c_char_p * len(headers))(*[h.name.encode() for h in headers])
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, f"{name}.cu".encode(), len(headers), texts, names)
    options = [f"--gpu-architecture={target}", *FLAGS]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    size = ctypes.c_size_t()
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise Failed(f"{name}.cu for {target} does not compile:\n{log.value.decode()}")
    get_size, get = (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if kind == "ptx" else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    get_size(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    get(program, code)
    # PTX comes with the NUL that ends a C string.
    return code.raw.rstrip(b"\0") if kind == "ptx" else code.raw


def sections(cubin):
    """Name, (info, bytes) of each section of a 64-bit ELF file, and its symbols' names."""
    table, (size, count, names) = struct.unpack_from("<Q", cubin, 0x28)[0], struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * size) for i in range(count)]
    text = lambda at, offset: cubin[at + offset : cubin.index(b"\0", at + offset)].decode()
    found, symbols = {}, []
    for head in heads:
        body = b"" if head[1] == 8 else cubin[head[4] : head[4] + head[5]]
        found[text(heads[names][4], head[0])] = (head[7], head[5], body)
        if head[1] == 2:
            strings = heads[head[6]][4]
            symbols = [text(strings, name) for (name,) in struct.iter_unpack("<I20x", body)]
    return found, symbols


def resources(cubin):
    """Registers, stack, local and static shared memory of each kernel, from where the driver reads them."""
    found, symbols = sections(cubin)
    size = lambda name: found.get(name, (0, 0, b""))[1]
    kernels = {
        name.removeprefix(".text."): {
            "registers": info >> 24,  # where old compilers wrote them
            "stack": 0,
            "local": size(name.replace(".text.", ".nv.local.")),
            "shared": size(name.replace(".text.", ".nv.shared.")),
        }
        for name, (info, _, _) in found.items()
        if name.startswith(".text.")
    }
    info, at = found[".nv.info"][2], 0
    while at < len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        if form == 4 and attribute in (0x11, 0x12, 0x2F):  # frame size, least stack size, registers
            symbol, value = struct.unpack_from("<II", info, at + 4)
            # Beside kernels there are functions that they call, such as an exact division; those keep their registers to
            # themselves, and what they need of the stack is everybody's.
            for kernel in [kernels[symbols[symbol]]] if symbols[symbol] in kernels else kernels.values():
                if attribute != 0x2F:
                    kernel["stack"] = max(kernel["stack"], value)
                elif symbols[symbol] in kernels:
                    kernel["registers"] = max(kernel["registers"], value)
        at += 4 + (length if form == 4 else 0)
    return kernels


def disassembled(home, cubin):
    """Machine code of each kernel as text; nothing where the disassembler is absent."""
    nvdisasm = next(iter(glob.glob(str(home / "dis/nvidia/*/bin/nvdisasm"))), None)
    if nvdisasm is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        sass = subprocess.run([nvdisasm, file.name], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"\.section\s+\.text\.(\w+)(.*?)(?=\.section\s|\Z)", sass, re.S))


def gates(target, found, code):
    """What is wrong with the kernels of one file; `code` is None without a disassembler."""
    broken = []
    for name, use in sorted(found.items()):
        if use["stack"] or use["local"]:
            broken.append(f"{name} for {target} uses {use['stack']} bytes of stack and {use['local']} of local memory")
        if use["registers"] == 0:
            broken.append(f"{name} for {target}: how many registers it uses is not known")
        if use["registers"] > REGISTERS.get(name, DEFAULT_REGISTERS):
            broken.append(f"{name} for {target} uses {use['registers']} registers")
        if code is None:
            continue
        if re.search(r"\b(LDL|STL)\b", code.get(name, "")):
            broken.append(f"{name} for {target} spills")
        for instruction, least in SASS.get(name, {}).items():
            seen = len(re.findall(rf"\b(?:{instruction})", code.get(name, "")))
            if seen < least:
                broken.append(f"{name} for {target} has {seen} x {instruction}, at least {least} expected")
        waits = len(re.findall(r"\bWARPGROUP\.DEPBAR", code.get(name, "")))
        if waits > WAITS.get(name, 0):
            broken.append(f"{name} for {target} waits for products in {waits} places")
    return broken


def build(home):
    files, manifest, broken, sass = {}, [], [], None
    for target, version, kind, names in TARGETS:
        nvrtc = ctypes.CDLL(library(home, version))
        major, minor = ctypes.c_int(), ctypes.c_int()
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        for name in names:
            code = compile_one(nvrtc, name, target, kind)
            file = f"{name}.{target}.{kind}"
            files[file] = code
            entry = {
                "file": file,
                "compiler": f"NVRTC {major.value}.{minor.value}",
                "flags": [f"--gpu-architecture={target}", *FLAGS],
                "bytes": len(code),
                "sha256": hashlib.sha256(code).hexdigest(),
            }
            if kind == "cubin":
                sass = disassembled(home, code)
                entry["kernels"] = resources(code)
                broken += gates(target, entry["kernels"], sass)
            manifest.append(entry)
    if sass is None:
        print("skipped: no nvdisasm, so no gates on instructions", file=sys.stderr)
    text = json.dumps({"schema": "muster/kernels", "version": 1, "files": manifest}, indent=1) + "\n"
    files["manifest.json"] = text.encode()
    return files, broken


def compare(files):
    """What differs from the committed files."""
    committed = {f.name: f.read_bytes() for f in PREBUILT.iterdir()} if PREBUILT.exists() else {}
    missing = [f"{n} is not committed" for n in sorted(files.keys() - committed.keys())]
    stale = [f"{n} is committed and no longer built" for n in sorted(committed.keys() - files.keys())]
    return missing + stale + [f"{n} differs" for n in sorted(files.keys() & committed.keys()) if files[n] != committed[n]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    home = pathlib.Path(os.environ.get("MUSTER_CUDA", "/nonexistent"))
    absent = sorted({version for _, version, _, _ in TARGETS if not library(home, version)})
    if absent:
        print(f"skipped: no {' and no '.join(absent)} below $MUSTER_CUDA ({home}); see --help", file=sys.stderr)
        return 3
    try:
        files, broken = build(home)
    except Failed as why:
        print(why, file=sys.stderr)
        return 2
    if check:
        broken += compare(files)
    else:
        PREBUILT.mkdir(exist_ok=True)
        for stale in PREBUILT.iterdir():
            stale.unlink()
        for name, code in files.items():
            (PREBUILT / name).write_bytes(code)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes", file=sys.stderr)
    return 2 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
