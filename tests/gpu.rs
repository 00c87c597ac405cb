//! GPUs on real OpenSSH nodes: the pushed probe, its worker, the real kernels, and a driver library that executes them on
//! the CPU. Each fault is found and named with its GPU and part, and nobody else is blamed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_tests::{Fleet, Lacks, Options, Ran, is_root, simulated_driver, skip, skip_part};
use serde_json::Value;

/// Interpreted kernels are slow, so the simulated GPUs are small; they are eight to a node.
const EIGHT: &str = "devices 8\nsms 4\nthreads 32\nmemory 9437184\n";

/// What a node has.
enum Has {
    /// GPUs with these settings beside those of all.
    Gpus(&'static str),
    /// A GPU on the bus and no driver's library.
    NoLibrary,
    /// A file by the library's name that is none.
    Garbage,
    /// No GPU.
    Nothing,
}

/// Node, what it has, its state, and what is said of it when its multiprocessors are looked at.
const NODES: [(&str, Has, &str, &[&str]); 11] = [
    ("n001", Has::Gpus(""), "pass", &[]),
    (
        "n002",
        Has::Gpus("gpu 3 flip sm=2 unit=mma bit=12 every=50\ngpu 7 sensor xid 79\n"),
        "fail",
        &[
            "sm-sdc: GPU 3: multiprocessor 2 computes wrong bits (bf16-mma: 4 of 4 runs), 3 others agree",
            "gpu-xid: GPU 7: Xid 79 during sm-sdc: the node wants a reboot",
        ],
    ),
    (
        "n003",
        Has::Gpus(
            "gpu 5 slow sm=1 factor=1.02\ngpu 0 sensor throttle 64\ngpu 1 sensor fabric_state 2\n\
             gpu 2 sensor nvlink_recoveries.7 0 by 1\n",
        ),
        "fail",
        &[
            "gpu-fabric: GPU 1: it is still joining the fabric",
            "gpu-nvlink-errors: GPU 2: NVLinks were trained again 1 times during sm-sdc",
            "sm-sdc: GPU 5: multiprocessor 1 takes 2.0 % more cycles than 3 others",
            "gpu-throttle: GPU 0: hardware thermal slowdown during sm-sdc",
        ],
    ),
    (
        "n004",
        // Two pages are looked at; byte 0x105 of page 1 is the second of word 65.
        Has::Gpus("memory 17825792\ngpu 6 stuck offset=0x200105 bit=3 value=1\ngpu 6 sensor ecc_uncorrected 0 by 2\n"),
        "fail",
        &["gpu-ecc-growth: GPU 6: 2 uncorrected memory errors during sm-sdc"],
    ),
    (
        "n005",
        Has::Gpus("gpu 1 hang kernel=burn_imad\n"),
        "fail",
        &["sm-sdc failed: GPU 1: hang: no progress for 12 s after 'GPU 1: imad'", "(1 of 8 GPUs)"],
    ),
    ("n006", Has::NoLibrary, "unknown", &["sm-sdc did not run: no NVIDIA driver library: libcuda.so.1: "]),
    (
        "n007",
        Has::Gpus("driver 11040\n"),
        "unknown",
        &["sm-sdc did not run: the NVIDIA driver is too old: it knows CUDA 11.4, 12.0 is needed"],
    ),
    (
        "n008",
        Has::Gpus("init 803\n"),
        "fail",
        &["sm-sdc failed: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver"],
    ),
    ("n009", Has::Garbage, "fail", &["sm-sdc failed: the NVIDIA driver library does not load: ", "too short"]),
    ("n010", Has::Nothing, "pass", &[]),
    (
        "n011",
        // Nobody on its own node could contradict it.
        Has::Gpus("devices 1\ngpu 0 flip sm=all unit=mma bit=12 every=7\n"),
        "fail",
        &["sm-sdc: GPU 0: all its multiprocessors compute other bits than 40 other GPUs on 5 nodes (bf16-mma)"],
    ),
];

/// What is said of the node with the stuck bit when its memory is looked at.
const MEMORY: [&str; 2] = [
    "gpu-memory-map: GPU 6: page 1 of memory does not keep bit 11 of word 65",
    "gpu-ecc-growth: GPU 6: 2 uncorrected memory errors during gpu-memory-map",
];

/// What becomes of the good node's GPUs, and what is said then: one card is not what it was, and one is another card.
const OTHERWISE: &str = "gpu 4 far sm=2 cycles=90\ngpu 5 card 9\n";
const CARDS: [&str; 2] = [
    "sm-sdc: GPU 4: 1 of 4 multiprocessors is not as far from L2 as in 1 earlier run of this card: 2 by +",
    "n001: GPU 5 is GPU-6d757374-6572-2d70-7478-73692d303935 now and was GPU-6d757374-6572-2d70-7478-73692d303035 in run ",
];

/// Those of the area `gpu` that ask more than what the bus and the kernel know, which nobody simulates.
const CHECKS: &str = "\"gpu-nvml\", \"gpu-ecc\", \"gpu-sram\", \"gpu-remap\", \"gpu-recovery\", \"gpu-nvlink\", \
    \"gpu-fabric\", \"gpu-throttle\", \"gpu-ecc-growth\", \"gpu-nvlink-errors\", \"gpu-xid\"";

/// Settings of the ways between GPUs, and what is said of the node. The slow way is so slow because no figure of the CPUs may
/// be different enough to accuse a node; the sound nodes are as many as it takes to fail one on a machine that is not quite quiet.
const LINKS: [(&str, &str, &[&str]); 9] = [
    ("n001", "", &[]),
    (
        "n002",
        "link 6 1 flip bit=3 every=9000\nnccl ncclCommInitAll 2\n",
        &[
            "gpu-peer-bw failed: GPU 6 to GPU 1 by the copy engine: ",
            "nccl-bw failed: ncclCommInitAll: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        ],
    ),
    // Has no NCCL, of which nothing is said.
    ("n003", "link 2 5 slow factor=5000\n", &["gpu2-to-gpu5"]),
    ("n004", "", &[]),
    ("n005", "", &[]),
    ("n007", "", &[]),
    ("n008", "", &[]),
    ("n010", "", &[]),
    ("n011", "", &[]),
];

/// One GPU a node: interpreted kernels and libraries are slow.
const ONE: &str = "devices 1\nsms 2\nthreads 64\nmemory 4194304\n";

/// Settings of the libraries on those nodes, and what is said of the node.
const FUNCTIONS: [(&str, &str, &[&str]); 9] = [
    ("n001", "", &[]),
    (
        "n002",
        "cublas cublasSgemm_v2 1001\n",
        &["cublas-function failed: GPU 0: number 2879 of sgemm-tn-40x72x40 by cuBLAS is "],
    ),
    ("n003", "cudnn cudnnCreate 1001\n", &["cudnn-function failed: GPU 0: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"]),
    ("n004", "cublas cublasSgemm_v2 1002\n", &["cublas-function/sgemm-tn-40x72x40:0"]),
    // Has neither library, of which nothing is said.
    ("n005", "", &[]),
    ("n007", "", &[]),
    ("n008", "", &[]),
    ("n010", "", &[]),
    ("n011", "", &[]),
];

/// The step `id` of the playbook `build-out` at the smallest profile, behind a look and a benchmark that needs no GPU.
fn book(id: &str) -> String {
    let build_out = include_str!("../playbooks/build-out.toml");
    let step = build_out.split("[[steps]]").find(|step| step.contains(&format!("id = \"{id}\""))).unwrap();
    let step = step.split("\n\n").next().unwrap();
    format!(
        "name = \"{id}\"\ntitle = \"GPUs of build-out\"\nprofile = \"smoke\"\n\
         [[steps]]\nid = \"look\"\ncheck = [{CHECKS}]\nrun = [\"cpu-dispatch\"]\n[[steps]]{step}\n"
    )
}

fn scan(fleet: &Fleet, step: &str, nodes: &[&str]) -> Ran {
    let path = fleet.path(step);
    std::fs::write(&path, book(step)).unwrap();
    // One at a time, as they share this machine's cores; no figure of the CPUs is different enough to accuse a node.
    let words = ["run", &path, "--one-at-a-time", "--alpha", "0.001", "--json", "--new"];
    fleet.console().run(&[&words[..], nodes].concat()).unwrap()
}

#[test]
fn every_broken_gpu_is_named_with_its_part_and_nobody_else_is_blamed() {
    if !is_root() {
        return skip(
            "every_broken_gpu_is_named_with_its_part_and_nobody_else_is_blamed",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: NODES.len() as u8 }).unwrap();
    prepare(&mut fleet);
    let ran = scan(&fleet, "gpu-parts", &[]);
    let report = ran.json().unwrap();
    let wrong: Vec<String> =
        NODES.iter().filter_map(|(node, _, state, words)| complaint(&report, node, state, words)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.err);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(gpus(&report, "n001"), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(gpus(&report, "n005"), [0, 2, 3, 4, 5, 6, 7], "a hang takes nothing from the others");
    assert_eq!(gpus(&report, "n010"), [0; 0]);

    fleet.node("n001").set_gpus(&format!("{EIGHT}identity 0\n{OTHERWISE}")).unwrap();
    let ran = scan(&fleet, "gpu-parts", &["-w", "n001"]);
    assert_eq!(complaint(&ran.json().unwrap(), "n001", "warn", &CARDS), None, "{}", ran.err);

    let ran = scan(&fleet, "gpu-memory", &["-w", "n004"]);
    let report = ran.json().unwrap();
    assert_eq!(complaint(&report, "n004", "fail", &MEMORY), None, "{}", ran.err);
    let pages = of(&report, "n004")["reasons"].to_string().matches("of memory does not keep").count();
    assert_eq!(pages, 1, "seven GPUs keep what is written");

    links(&mut fleet);
    functions(&mut fleet);
}

fn functions(fleet: &mut Fleet) {
    for (name, settings, _) in FUNCTIONS {
        fleet.node(name).set_gpus(&format!("{ONE}{settings}")).unwrap();
    }
    for library in ["libcublas.so.12", "libcudnn.so.9"] {
        fleet.node("n005").remove_library(library).unwrap();
    }
    let ran = scan(fleet, "gpu-functions", &["-w", "n[001-005,007-008,010-011]"]);
    let report = ran.json().unwrap();
    for (name, _, words) in FUNCTIONS {
        let state = if words.is_empty() { "pass" } else { "fail" };
        assert_eq!(complaint(&report, name, state, words), None, "{}", ran.err);
    }
    let measured = |name: &str, engine: &str| {
        let verdicts = of(&report, name)["verdicts"].as_array().unwrap();
        let own = |v: &&Value| v["metric"].as_str().is_some_and(|metric| metric.contains("-function/"));
        verdicts.iter().filter(own).any(|v| v["engine"].as_str().is_some_and(|known| known.starts_with(engine)))
    };
    assert!(measured("n001", "cublas-12.4") && measured("n001", "cudnn-9.1") && measured("n005", "own"));
    assert!(!measured("n005", "cublas") && !measured("n005", "cudnn"), "a library that is not there is no fault");
}

fn links(fleet: &mut Fleet) {
    fleet.node("n010").drive_gpus(&simulated_driver(), EIGHT).unwrap();
    for (name, settings, _) in LINKS {
        fleet.node(name).set_gpus(&format!("{EIGHT}{settings}")).unwrap();
    }
    fleet.node("n003").remove_library("libnccl.so.2").unwrap();
    let ran = scan(fleet, "gpu-links", &["-w", "n[001-005,007-008,010-011]"]);
    let report = ran.json().unwrap();
    if of(&report, "n003")["reasons"].to_string().contains("foreign CPU load") {
        let test = "every_broken_gpu_is_named_with_its_part_and_nobody_else_is_blamed";
        return skip_part(test, "the slow link", Lacks::Quiet, "others used this machine's CPUs");
    }
    for (name, _, words) in LINKS {
        let state = if words.is_empty() { "pass" } else { "fail" };
        assert_eq!(complaint(&report, name, state, words), None, "{}", ran.err);
    }
    assert!(!of(&report, "n003")["reasons"].to_string().contains("nccl"), "a library that is not there is no fault");
}

/// GPUs that train: two to a node, as a training takes long on simulated ones.
const TRAIN: &str = "devices 2\nsms 2\nmemory 33554432\n";
/// Of trainings: settings beside those of all, and what is said of the node when its GPUs train together. Where GPU 2 is wrong there are
/// three, as of two either may be.
const TEAMS: [(&str, &str, &[&str]); 6] = [
    ("n001", "", &[]),
    ("n002", "", &[]),
    ("n003", "", &[]),
    ("n004", "", &[]),
    (
        "n005",
        WRONG,
        &["gpu-train-ddp failed: ", " GPU 2: its gradients of the same batch are not those of 2 other GPUs"],
    ),
    (
        "n006",
        "link 0 1 flip bit=3 every=64\n",
        &["gpu-train-ddp failed: ", " a sum of known numbers: GPU 0 to GPU 1: "],
    ),
];
const WRONG: &str = "devices 3\ngpu 2 flip sm=all unit=mma bit=20 every=7\n";

#[test]
fn gpus_that_train_one_model_on_their_node_and_on_many_name_who_is_wrong() {
    let test = "gpus_that_train_one_model_on_their_node_and_on_many_name_who_is_wrong";
    if !is_root() {
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: TEAMS.len() as u8 }).unwrap();
    let library = simulated_driver();
    for (at, (name, settings, _)) in TEAMS.iter().enumerate() {
        fleet.node(name).drive_gpus(&library, &format!("{TRAIN}identity {at}\n{settings}")).unwrap();
        fleet.node(name).remove_library("libnccl.so.2").unwrap();
    }
    let ran = scan(&fleet, "gpu-train-ddp", &["--visits", "1"]);
    let report = ran.json().unwrap();
    for (name, _, words) in TEAMS {
        let state = if words.is_empty() { "pass" } else { "fail" };
        assert_eq!(complaint(&report, name, state, words), None, "{}", ran.err);
    }

    // Four of them at once, one rank each: first sound, then one wrong.
    let four = &TEAMS[..4];
    for (name, ..) in four {
        fleet.node(name).set_gpus(TRAIN).unwrap();
    }
    let sound = together(&fleet);
    let report = sound.json().unwrap();
    assert!(sound.err.contains("train-ddp: the same weights on 4 nodes after every step, digest "), "{}", sound.err);
    for (name, ..) in four {
        assert_eq!(complaint(&report, name, "pass", &[]), None, "{}", sound.err);
    }
    let told = fleet.console().run(&["export", "--format", "samples"]).unwrap().out;
    assert!(told.contains("train-ddp/compute_time:1@lstm-nano-2gpu-own-ptx"), "{told}");

    fleet.node("n003").set_gpus(&format!("{TRAIN}{WRONG}")).unwrap();
    let wrong = together(&fleet);
    let report = wrong.json().unwrap();
    let words = ["rank 2: GPU 2: its gradients of the same batch are not those of 2 other GPUs"];
    assert_eq!(complaint(&report, "n003", "fail", &words), None, "{}", wrong.err);
    for (name, ..) in four.iter().filter(|(name, ..)| *name != "n003") {
        assert_ne!(of(&report, name)["state"], "fail", "{name}: {}", wrong.err);
    }
    shapes(&mut fleet);
}

/// The same nodes, when their GPUs compute beside an all-reduce and share products out: none of them has NCCL, of which nothing is said.
fn shapes(fleet: &mut Fleet) {
    let said: [(&str, &str, &[&str]); 3] = [
        ("n001", "", &[]),
        ("n002", "", &[]),
        ("n003", WRONG, &["gpu-sharding-matmul failed: GPU 2: its part of bf16-", " other bits than the other GPUs: "]),
    ];
    for (name, settings, _) in said {
        fleet.node(name).set_gpus(&format!("{TRAIN}{settings}")).unwrap();
    }
    let ran = scan(fleet, "gpu-together", &["-w", "n[001-003]", "--visits", "1"]);
    let report = ran.json().unwrap();
    for (name, _, words) in said {
        let state = if words.is_empty() { "pass" } else { "fail" };
        assert_eq!(complaint(&report, name, state, words), None, "{}", ran.err);
    }
}

/// Of a training by NCCL over four nodes: what is changed on one of them, whether it fails for that, and what is said of it or of the
/// way that all took.
const BETWEEN: [(&str, &str, bool, &str); 5] = [
    (
        "n003",
        "nccl ncclAllReduce 1001\n",
        true,
        "a sum of known numbers by NCCL over all nodes is wrong: what GPU 1 of rank 2 brings arrives wrong",
    ),
    ("n002", "nccl ncclCommInitRank 1000\n", true, " after 'the start of NCCL on this node alone'"),
    ("n004", "nccl ncclCommGetAsyncError 3\n", true, "rank 3: GPU 0: NCCL: internal error"),
    ("n001", "nccl-version 22304\n", false, "by tcp, n001: NCCL 2.23, where most have 2.21"),
    // Has no libnccl.so.2.
    ("n004", "", false, "by tcp, n004: no libnccl.so.2 on this node"),
];

#[test]
fn gpus_of_many_nodes_sum_by_nccl_where_all_have_it_and_who_keeps_them_from_it_is_named() {
    let test = "gpus_of_many_nodes_sum_by_nccl_where_all_have_it_and_who_keeps_them_from_it_is_named";
    if !is_root() {
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let (library, names) = (simulated_driver(), ["n001", "n002", "n003", "n004"]);
    for name in names {
        fleet.node(name).drive_gpus(&library, TRAIN).unwrap();
    }
    let digests: Vec<String> = (0..2).map(|_| by_nccl(&fleet, &names)).collect();
    assert_eq!(digests[0], digests[1], "the same seed and the same way give the same bits");
    let told = fleet.console().run(&["export", "--format", "samples"]).unwrap().out;
    assert!(told.contains("train-ddp/compute_time:1@lstm-nano-2gpu-own-ptx+nccl-2.21-nodes"), "{told}");
    for (odd, settings, fails, words) in BETWEEN {
        fleet.node(odd).set_gpus(&format!("{TRAIN}{settings}")).unwrap();
        if settings.is_empty() {
            fleet.node(odd).remove_library("libnccl.so.2").unwrap();
        }
        // One that hangs is given up after half a minute and not a whole one.
        let profile = if settings.contains(" 1000") { "quick" } else { "standard" };
        let ran = train(&fleet, "n[001-004]", profile);
        let report = ran.json().unwrap();
        for name in names {
            let (state, said): (&str, &[&str]) = if fails && name == odd { ("fail", &[words]) } else { ("pass", &[]) };
            let complaint = if state == "fail" { complaint(&report, name, state, said) } else { None };
            assert_eq!(complaint, None, "{settings}: {}", ran.err);
            assert_eq!(of(&report, name)["state"] == "fail", state == "fail", "{settings}: {name}: {}", ran.err);
            let left = fleet.node(name).sh("pgrep -fc '[t]rain-ddp|[/]fd/' || true").unwrap();
            assert_eq!(left.trim(), "0", "{settings}: {name}");
        }
        assert!(fails || ran.err.contains(words), "{settings}: {}", ran.err);
        fleet.node(odd).set_gpus(TRAIN).unwrap();
    }
    let told = fleet.console().run(&["export", "--format", "samples"]).unwrap().out;
    assert!(told.contains("train-ddp/compute_time:1@lstm-nano-2gpu-own-ptx,"), "{told}");
}

/// The digest of a training by NCCL that nobody disturbs.
fn by_nccl(fleet: &Fleet, names: &[&str]) -> String {
    let ran = together(fleet);
    let report = ran.json().unwrap();
    for name in names {
        assert_eq!(complaint(&report, name, "pass", &[]), None, "{}", ran.err);
    }
    let said = "train-ddp: the same weights on 4 nodes after every step, digest ";
    let (_, rest) = ran.err.split_once(said).unwrap_or_else(|| panic!("{}", ran.err));
    let (digest, way) = rest.split_once(';').unwrap_or_else(|| panic!("{}", ran.err));
    assert!(way.starts_with(" gradients from node to node by nccl-2.21"), "{}", ran.err);
    digest.to_owned()
}

/// The nodes of the campaign, of which the fifth has a slow GPU 1: a verdict needs seven nodes of a kind.
const NINE: u8 = 9;
const SLOW: &str = "gpu 1 slow sm=0 factor=3\ngpu 1 slow sm=1 factor=3\n";
/// Works of several GPUs, by their step of `build-out` where it has one, and what names a GPU 1 that computes slowly.
const WORKS: [(&str, &[&str]); 3] = [
    ("train-ddp", &["train-ddp/compute_time:1"]),
    ("gpu-train-ddp", &["gpu-train-ddp/", "_compute_time:1"]),
    // Two of sharded products, four of computing alone and beside sums.
    ("gpu-together", &[":1 ", "the same in all 6 gpu:1 metrics"]),
];

#[test]
#[ignore = "a campaign: tests/campaign gpus"]
fn a_slow_gpu_of_nine_nodes_is_named_by_every_work_of_several_gpus() {
    assert!(is_root(), "needs root, for namespaces");
    let mut fleet = Fleet::up(Options { nodes: NINE }).unwrap();
    let (library, names) = (simulated_driver(), (1..=NINE).map(|at| format!("n{at:03}")).collect::<Vec<_>>());
    for name in &names {
        let slow = if name == "n005" { SLOW } else { "" };
        fleet.node(name).drive_gpus(&library, &format!("{TRAIN}{slow}")).unwrap();
    }
    println!("| work | said of n005 | other nodes that failed or were warned about | seconds |\n|---|---|---|---|");
    let mut wrong = Vec::new();
    for (work, metrics) in WORKS {
        let begun = std::time::Instant::now();
        let ran = if work == "train-ddp" {
            train(&fleet, "n[001-009]", "standard")
        } else {
            names.iter().for_each(|name| drop(fleet.node(name).remove_library("libnccl.so.2")));
            scan(&fleet, work, &["--visits", "1"])
        };
        let report = ran.json().unwrap();
        let reasons = of(&report, "n005")["reasons"].to_string();
        let told = report["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|node| node["state"] == "fail" || node["state"] == "warn");
        let others: Vec<&str> = told.filter_map(|node| node["node"].as_str()).filter(|name| *name != "n005").collect();
        let seconds = begun.elapsed().as_secs();
        println!("| {work} | {}: {reasons} | {} | {seconds} |", of(&report, "n005")["state"], others.join(" "));
        if !metrics.iter().all(|metric| reasons.contains(metric)) || !others.is_empty() {
            wrong.push((work, ran.err));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A training over the first four nodes.
fn together(fleet: &Fleet) -> Ran {
    train(fleet, "n[001-004]", "standard")
}

/// A training over `nodes`. Simulated GPUs need the patience of a profile that has some.
fn train(fleet: &Fleet, nodes: &str, profile: &str) -> Ran {
    let path = fleet.path("together");
    let text = format!(
        "name = \"together\"\ntitle = \"Training on GPUs\"\nprofile = \"{profile}\"\n\
         [[steps]]\nid = \"train\"\ntrain_ddp = {{ model = \"lstm-nano\", steps = 9 }}\n"
    );
    std::fs::write(&path, text).unwrap();
    fleet.console().run(&["run", &path, "--alpha", "0.001", "--json", "--new", "-w", nodes]).unwrap()
}

fn prepare(fleet: &mut Fleet) {
    let library = simulated_driver();
    for (at, (name, has, ..)) in NODES.iter().enumerate() {
        let node = fleet.node(name);
        match has {
            Has::Gpus(settings) => {
                node.drive_gpus(&library, &format!("{EIGHT}identity {at}\n{settings}")).unwrap();
            }
            Has::Garbage => node.drive_gpus(b"no library", "").unwrap(),
            Has::NoLibrary => node.gpu_on_the_bus().unwrap(),
            Has::Nothing => {}
        }
    }
    // The worker is carried in memory, and in a file where that is not allowed.
    fleet.node("n003").forbid_memory_execution().unwrap();
}

/// What is wrong in the report about one node.
fn complaint(report: &Value, node: &str, state: &str, words: &[&str]) -> Option<String> {
    let found = of(report, node);
    let reasons = found["reasons"].as_array().unwrap();
    let told = |word: &&str| reasons.iter().any(|reason| reason.as_str().unwrap().contains(*word));
    let about_gpus = reasons.iter().any(|reason| reason.as_str().unwrap().contains("GPU"));
    // A machine may be too noisy to let a healthy node pass; it must never accuse one.
    let right = match state {
        "pass" => found["state"] != "fail" && !about_gpus,
        state => found["state"] == state && words.iter().all(told),
    };
    (!right).then(|| format!("{node} is to be {state} for {words:?}, and is {}: {reasons:#?}", found["state"]))
}

fn of<'a>(report: &'a Value, node: &str) -> &'a Value {
    report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node).unwrap()
}

/// GPUs of `node` whose multiprocessors were measured to the end.
fn gpus(report: &Value, node: &str) -> Vec<u32> {
    let verdicts = of(report, node)["verdicts"].as_array().unwrap();
    let measured = verdicts.iter().filter(|v| v["value"].is_number());
    let metric = measured.filter_map(|v| v["metric"].as_str()?.strip_prefix("sm-sdc/imad-cycles:"));
    let mut gpus: Vec<u32> = metric.map(|gpu| gpu.parse().unwrap()).collect();
    gpus.sort_unstable();
    gpus
}
