//! Opcode words to operations.

use crate::code::{Async, Compare, Number, One, Op, Shuffle, Space, Two, Ty};

/// Operation and type of `word`, such as `add.s32`; `None` for what the kernels do not use.
pub(crate) fn decode(word: &str) -> Option<(Op, Ty)> {
    let parts: Vec<&str> = word.split('.').collect();
    let has = |part: &str| parts.contains(&part);
    let types: Vec<Ty> = parts.iter().filter_map(|p| Ty::parse(p)).collect();
    let ty = types.last().copied().unwrap_or(Ty::U(4));
    let whole = has("f32") || has("f64");
    // Other roundings, flushes and saturation would be other instructions.
    if whole && parts.iter().any(|p| matches!(*p, "ftz" | "sat" | "rz" | "rm" | "rp" | "approx")) {
        return None;
    }
    let op = match parts[0] {
        "mov" | "cvta" => Op::Mov,
        "ld" => Op::Load { space: space(&parts)?, past_l1: has("cg") },
        "st" => Op::Store(space(&parts)?),
        "not" => Op::Not,
        "neg" => Op::Neg,
        "mad" if has("lo") || has("wide") => Op::Mad { wide: has("wide") },
        "fma" if has("rn") => Op::Fma,
        "cvt" if word == "cvt.rn.bf16x2.f32" => Op::Two(Two::Bf16Pair),
        "cvt" if word == "cvt.rn.bf16.f32" => Op::One(One::Bf16),
        "cvt" if word == "cvt.rn.f16.f32" => Op::One(One::Fp16),
        "cvt" if word == "cvt.f32.f16" => Op::One(One::Widened),
        "cvt" => return Some((Op::Convert { from: ty }, *types.first()?)),
        "rcp" if has("rn") => Op::One(One::Reciprocal),
        "sqrt" if has("rn") => Op::One(One::Root),
        "setp" if parts.len() == 3 => {
            let (how, unordered) = comparison(parts[1], whole)?;
            Op::Set { how, unordered }
        }
        "selp" => Op::Select,
        "bfi" => Op::Bfi,
        "bra" => Op::Branch,
        "ret" | "exit" => Op::Leave,
        "bar" | "barrier" if has("warp") => Op::WarpBarrier,
        "bar" | "barrier" if has("sync") => Op::Barrier,
        "shfl" if has("sync") => Op::Shuffle(shuffle(&parts)?),
        "atom" | "red" => Op::Atomic(space(&parts)?, parts.iter().find_map(|p| two(p))?),
        "mma" => Op::Mma(match word.strip_prefix("mma.sync.aligned.m16n8")? {
            "k16.row.col.f32.bf16.bf16.f32" => Number::Bf16,
            "k16.row.col.f32.f16.f16.f32" => Number::F16,
            "k8.row.col.f32.tf32.tf32.f32" => Number::Tf32,
            "k32.row.col.s32.s8.s8.s32" => Number::S8,
            _ => return None,
        }),
        "ldmatrix" if has("m8n8") && has("b16") => Op::LdMatrix { transposed: has("trans") },
        "wgmma" | "mbarrier" | "fence" => Op::Async(beside(word)?),
        "cp" if has("bulk") => match word {
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" => Op::Async(Async::Bulk),
            _ => return None,
        },
        "cp" if has("commit_group") => Op::Commit,
        "cp" if has("wait_group") => Op::Wait,
        "cp" if has("async") && has("shared") && has("global") => Op::CopyAsync,
        "mul" if has("wide") => Op::Two(Two::MulWide),
        "mul" if has("hi") => Op::Two(Two::MulHi),
        base => Op::Two(two(base)?),
    };
    Some((op, ty))
}

fn beside(word: &str) -> Option<Async> {
    Some(match word {
        "wgmma.fence.sync.aligned" => Async::ProductFence,
        "wgmma.commit_group.sync.aligned" => Async::ProductCommit,
        "wgmma.wait_group.sync.aligned" => Async::ProductWait,
        "fence.proxy.async" => Async::ProxyFence,
        "mbarrier.init.shared::cta.b64" => Async::BarrierInit,
        "mbarrier.arrive.shared::cta.b64" => Async::BarrierArrive,
        "mbarrier.arrive.expect_tx.shared::cta.b64" => Async::BarrierExpect,
        "mbarrier.try_wait.parity.shared::cta.b64" => Async::BarrierTry,
        _ => {
            let (_, kind) = word.strip_prefix("wgmma.mma_async.sync.aligned.m64n")?.split_once('k')?;
            Async::Product(match kind {
                "16.f32.bf16.bf16" => Number::Bf16,
                "16.f32.f16.f16" => Number::F16,
                "8.f32.tf32.tf32" => Number::Tf32,
                "32.s32.s8.s8" => Number::S8,
                "32.f32.e4m3.e4m3" => Number::E4m3,
                _ => return None,
            })
        }
    })
}

fn space(parts: &[&str]) -> Option<Space> {
    parts.iter().find_map(|part| match *part {
        "global" => Some(Space::Global),
        "shared" => Some(Space::Shared),
        "param" => Some(Space::Param),
        _ => None,
    })
}

fn two(word: &str) -> Option<Two> {
    Some(match word {
        "add" => Two::Add,
        "sub" => Two::Sub,
        "mul" => Two::Mul,
        "div" => Two::Div,
        "rem" => Two::Rem,
        "and" => Two::And,
        "or" => Two::Or,
        "xor" => Two::Xor,
        "shl" => Two::Shl,
        "shr" => Two::Shr,
        "min" => Two::Min,
        "max" => Two::Max,
        _ => return None,
    })
}

/// A comparison, and whether it holds for what is not a number: `neu` does, `ne` does not.
fn comparison(word: &str, whole: bool) -> Option<(Compare, bool)> {
    let plain = || Some((compare(word)?, false));
    word.strip_suffix('u').filter(|_| whole).map_or_else(plain, |base| Some((compare(base)?, true)))
}

fn compare(word: &str) -> Option<Compare> {
    Some(match word {
        "eq" => Compare::Eq,
        "ne" => Compare::Ne,
        "lt" | "lo" => Compare::Lt,
        "le" | "ls" => Compare::Le,
        "gt" | "hi" => Compare::Gt,
        "ge" | "hs" => Compare::Ge,
        _ => return None,
    })
}

fn shuffle(parts: &[&str]) -> Option<Shuffle> {
    parts.iter().find_map(|part| match *part {
        "bfly" => Some(Shuffle::Xor),
        "down" => Some(Shuffle::Down),
        "up" => Some(Shuffle::Up),
        "idx" => Some(Shuffle::Index),
        _ => None,
    })
}
