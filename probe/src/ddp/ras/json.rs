//! A report as NCCL 2.28.7 and later write it in JSON.

use serde_json::{Value, json};

use super::report::{Member, RELEASE, Report, Ring};
use crate::clock;

pub(super) fn write(report: &Report) -> String {
    let whole = json!({
        "nccl_version": RELEASE,
        "cuda_runtime_version": 0,
        "cuda_driver_version": 0,
        "timestamp": clock::written(report.at_s),
        "communicators_count": report.rings.len(),
        "communicators": report.rings.iter().map(ring).collect::<Vec<_>>(),
        "ras": { "collection_time_sec": report.took.as_secs_f64(), "timeouts_count": report.timeouts },
    });
    format!("{whole:#}\n")
}

fn ring(ring: &Ring) -> Value {
    let (here, missing): (Vec<Value>, Vec<Value>) = (
        ring.here().map(|(member, reduce, gather, failed)| here(member, (reduce, gather), failed)).collect(),
        ring.missing().map(|(member, dead)| missing(member, dead)).collect(),
    );
    json!({
        "hash": format!("{:#018x}", ring.hash),
        "secondary_hash": format!("{:#x}:{:#x}", ring.hash >> 32, ring.hash & 0xffff_ffff),
        "size": ring.members.len(),
        "ranks_count": here.len(),
        "missing_ranks_count": missing.len(),
        "ranks": here,
        "missing_ranks": missing,
    })
}

fn here(member: &Member, (all_reduce, all_gather): (u64, u64), failed: bool) -> Value {
    json!({
        "rank": member.rank,
        "host": member.host.to_string(),
        "pid": member.pid,
        "cuda_dev": member.slot,
        "nvml_dev": member.slot,
        "status": {
            "init_state": 0,
            "async_error": 0,
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": failed,
        },
        "collective_counts": {
            "Broadcast": 0,
            "Reduce": 0,
            "AllGather": all_gather,
            "ReduceScatter": 0,
            "AllReduce": all_reduce,
        },
    })
}

fn missing(member: &Member, dead: bool) -> Value {
    json!({
        "rank": member.rank,
        "host": member.host.to_string(),
        "pid": member.pid,
        "cuda_dev": member.slot,
        "nvml_dev": member.slot,
        "status": { "unresponsive": true, "considered_dead": dead },
    })
}
