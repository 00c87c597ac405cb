#!/usr/bin/env bash
# What muster's kernels do on a machine with NVIDIA GPUs, in one JSON document. Builds nothing, takes less than ten
# minutes, changes no setting. Needs python3 for the document, and of muster only the probe, which carries all kernels:
# cargo build --release leaves it in target/probe-static/x86_64-unknown-linux-gnu/probe/.
#
#   tests/gpu/h200.sh path/to/muster-probe [h200.json]
#
# PROFILE=smoke is for simulated drivers. Exit codes: 0 all is as expected, 2 something is not, 64 not understood.
set -uo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 64; }
probe=$(realpath "$1") out=${2:-h200.json} profile=${PROFILE:-quick}
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
begin=$SECONDS

# step NAME SECONDS COMMAND...: its output as NAME.json, its exit code as NAME.rc; nothing once nine minutes are over
step() {
    local name=$1 limit=$2 left=$((540 - (SECONDS - begin))); shift 2
    [ "$left" -gt 0 ] || { echo "h200.sh: no time left for $name" >&2; return; }
    echo "h200.sh: $name, $((SECONDS - begin)) s" >&2
    timeout -k 5 "$((limit < left ? limit : left))" "$@" > "$dir/$name.json" 2> "$dir/$name.err"
    echo $? > "$dir/$name.rc"
}
measure() {
    local name=$1 limit=$2; shift 2
    step "$name" "$limit" "$probe" run "$@" --profile "$profile" --format json
}
# The last ones are for more than one GPU, and for machines that have NVIDIA's libraries, be it in python3's packages.
ladder="kernel-launch gpu-stream gpu-copy-bw gemm-flops gpu-overlap cublaslt-gemm gpu-peer-bw p2p-allreduce nccl-bw gpu-comm-overlap gpu-sharding-matmul"
wheels=$(python3 -c 'import glob, site
print(":".join(f for d in site.getsitepackages() + [site.getusersitepackages()] for f in sorted(glob.glob(d + "/nvidia/*/lib"))))')
export MUSTER_LIBRARIES=$wheels${MUSTER_LIBRARIES:+:$MUSTER_LIBRARIES}

step inventory 60 "$probe" info --format json
measure parts 90 sm-sdc gpu-memory-map
measure first 150 $ladder
measure second 150 $ladder
measure functions 90 cublas-function cudnn-function
measure burn 60 gpu-burn
measure training 200 gpu-train-gpt2 gpu-train-bert gpu-train-lstm gpu-train-resnet gpu-train-densenet gpu-train-vgg gpu-train-ddp
# What PyTorch makes of the same models on the same card, where it is.
python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null &&
    step torch 60 python3 "$(dirname "$0")/torch_steps.py"
# No machine code is loaded then, but what the driver compiles itself.
MUSTER_GPU_CODE=ptx measure fallback 60 sm-sdc gpu-train-lstm
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
        step "$tool" 60 compute-sanitizer --tool "$tool" --target-processes all --report-api-errors no --error-exitcode 9 \
            "$probe" run sm-sdc --profile smoke --format json
    done
fi
python3 "$(dirname "$0")/judge.py" "$dir" "$out" "$((SECONDS - begin))"
