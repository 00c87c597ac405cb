//! What `infiniband/verbs.h` lays out in memory, as far as it is read or written here. The order of fields is an interface that
//! does not change; the test below asks a C compiler where the header is installed.

use std::ffi::{c_int, c_void};

/// `IBV_WC_SUCCESS`, `IBV_WR_RDMA_WRITE`, `IBV_SEND_SIGNALED`, `IBV_QPT_RC`.
pub(super) const SUCCESS: c_int = 0;
pub(super) const RDMA_WRITE: c_int = 0;
pub(super) const SIGNALED: u32 = 2;
pub(super) const RELIABLE: c_int = 2;
/// `IBV_ACCESS_LOCAL_WRITE`, and `IBV_ACCESS_REMOTE_WRITE`.
pub(super) const LOCAL_WRITE: c_int = 1;
pub(super) const REMOTE_WRITE: c_int = 2;
/// `IBV_PORT_ACTIVE`.
pub(super) const ACTIVE: c_int = 4;
/// `IBV_LINK_LAYER_ETHERNET`.
pub(super) const ETHERNET: u8 = 2;
/// `IBV_QPS_INIT`, `IBV_QPS_RTR`, `IBV_QPS_RTS`.
pub(super) const INIT: c_int = 1;
pub(super) const READY_TO_RECEIVE: c_int = 2;
pub(super) const READY_TO_SEND: c_int = 3;

/// Which attributes of a queue pair are set.
pub(super) mod mask {
    use std::ffi::c_int;

    pub(in crate::verbs) const STATE: c_int = 1;
    pub(in crate::verbs) const ACCESS: c_int = 1 << 3;
    pub(in crate::verbs) const PKEY: c_int = 1 << 4;
    pub(in crate::verbs) const PORT: c_int = 1 << 5;
    pub(in crate::verbs) const ADDRESS: c_int = 1 << 7;
    pub(in crate::verbs) const PATH_MTU: c_int = 1 << 8;
    pub(in crate::verbs) const TIMEOUT: c_int = 1 << 9;
    pub(in crate::verbs) const RETRIES: c_int = 1 << 10;
    pub(in crate::verbs) const NOT_READY_RETRIES: c_int = 1 << 11;
    pub(in crate::verbs) const RECEIVE_NUMBER: c_int = 1 << 12;
    pub(in crate::verbs) const READS_AT_ONCE: c_int = 1 << 13;
    pub(in crate::verbs) const NOT_READY_TIMER: c_int = 1 << 15;
    pub(in crate::verbs) const SEND_NUMBER: c_int = 1 << 16;
    pub(in crate::verbs) const READS_TAKEN: c_int = 1 << 17;
    pub(in crate::verbs) const PEER: c_int = 1 << 20;
}

/// The part of `struct ibv_context` that is read: posting and polling have no symbols, they are called through it.
#[repr(C)]
pub(super) struct Context {
    device: *mut c_void,
    before_poll: [*mut c_void; 11],
    pub(super) poll_cq: Option<unsafe extern "C" fn(*mut CompletionQueue, c_int, *mut Completion) -> c_int>,
    between: [*mut c_void; 13],
    pub(super) post_send: Option<unsafe extern "C" fn(*mut QueuePair, *mut Request, *mut *mut Request) -> c_int>,
}

#[repr(C)]
pub(super) struct CompletionQueue {
    pub(super) context: *mut Context,
}

#[repr(C)]
pub(super) struct QueuePair {
    pub(super) context: *mut Context,
    own: *mut c_void,
    domain: *mut c_void,
    send: *mut c_void,
    receive: *mut c_void,
    shared: *mut c_void,
    handle: u32,
    pub(super) number: u32,
}

#[repr(C)]
pub(super) struct MemoryRegion {
    context: *mut Context,
    domain: *mut c_void,
    address: *mut c_void,
    length: usize,
    handle: u32,
    pub(super) local_key: u32,
    pub(super) remote_key: u32,
}

/// `union ibv_gid`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gid(pub(super) [u8; 16]);

/// `struct ibv_port_attr`; with room for what later headers append.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortAttributes {
    pub(super) state: c_int,
    max_mtu: c_int,
    pub(super) active_mtu: c_int,
    gid_table: c_int,
    capabilities: u32,
    pub(super) longest_message: u32,
    bad_keys: u32,
    violations: u32,
    key_table: u16,
    pub(super) lid: u16,
    subnet_manager: u16,
    small: [u8; 8],
    pub(super) link_layer: u8,
    flags: u8,
    rest: [u32; 8],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capacity {
    pub(super) sends: u32,
    pub(super) receives: u32,
    pub(super) send_parts: u32,
    pub(super) receive_parts: u32,
    pub(super) inline_bytes: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub(super) struct QueuePairWish {
    pub(super) own: *mut c_void,
    pub(super) send: *mut CompletionQueue,
    pub(super) receive: *mut CompletionQueue,
    pub(super) shared: *mut c_void,
    pub(super) capacity: Capacity,
    pub(super) kind: c_int,
    pub(super) signal_all: c_int,
}

/// `struct ibv_ah_attr` with its `struct ibv_global_route`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Address {
    pub(super) gid: Gid,
    pub(super) flow: u32,
    pub(super) own_index: u8,
    pub(super) hops: u8,
    pub(super) class: u8,
    pub(super) lid: u16,
    pub(super) level: u8,
    pub(super) path: u8,
    pub(super) rate: u8,
    pub(super) is_global: u8,
    pub(super) port: u8,
}

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueuePairAttributes {
    pub(super) state: c_int,
    pub(super) current: c_int,
    pub(super) path_mtu: c_int,
    pub(super) migration: c_int,
    pub(super) queue_key: u32,
    pub(super) receive_number: u32,
    pub(super) send_number: u32,
    pub(super) peer: u32,
    pub(super) access: c_int,
    pub(super) capacity: Capacity,
    pub(super) address: Address,
    pub(super) other_address: Address,
    pub(super) key: u16,
    pub(super) other_key: u16,
    pub(super) notify: u8,
    pub(super) draining: u8,
    pub(super) reads_at_once: u8,
    pub(super) reads_taken: u8,
    pub(super) not_ready_timer: u8,
    pub(super) port: u8,
    pub(super) timeout: u8,
    pub(super) retries: u8,
    pub(super) not_ready_retries: u8,
    pub(super) other_port: u8,
    pub(super) other_timeout: u8,
    pub(super) rate_limit: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) key: u32,
}

/// `struct ibv_send_wr`.
#[repr(C)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) next: *mut Self,
    pub(super) parts: *mut Part,
    pub(super) count: c_int,
    pub(super) what: c_int,
    pub(super) flags: u32,
    immediate: u32,
    pub(super) remote_address: u64,
    pub(super) remote_key: u32,
    rest: [u32; 19],
}

impl Request {
    /// A write of `part`, whose completion tells `id`.
    pub(super) const fn write(id: u64, part: *mut Part, (remote_address, remote_key): (u64, u32)) -> Self {
        let (next, flags) = (std::ptr::null_mut(), SIGNALED);
        Self {
            id,
            next,
            parts: part,
            count: 1,
            what: RDMA_WRITE,
            flags,
            immediate: 0,
            remote_address,
            remote_key,
            rest: [0; 19],
        }
    }
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Completion {
    pub(super) id: u64,
    pub(super) status: c_int,
    what: c_int,
    pub(super) vendor: u32,
    rest: [u32; 7],
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::mem::{offset_of, size_of};
    use std::process::{Command, Stdio};

    use super::*;

    /// A claim of each field: that it lies in C where it lies here.
    macro_rules! lie {
        ($ours:ident as $c:literal: $($own:ident = $field:literal),* $(,)?) => {
            vec![$(format!("offsetof({}, {}) == {}", $c, $field, offset_of!($ours, $own))),*]
        };
    }

    /// A claim of each constant: that C has the same.
    macro_rules! equal {
        ($($c:literal = $ours:expr),* $(,)?) => { vec![$(format!("{} == {}", $c, $ours)),*] };
    }

    fn objects() -> Vec<String> {
        [
            lie!(Context as "struct ibv_context": poll_cq = "ops.poll_cq", post_send = "ops.post_send"),
            lie!(CompletionQueue as "struct ibv_cq": context = "context"),
            lie!(QueuePair as "struct ibv_qp": context = "context", number = "qp_num"),
            lie!(MemoryRegion as "struct ibv_mr": local_key = "lkey", remote_key = "rkey"),
            lie!(PortAttributes as "struct ibv_port_attr": state = "state", active_mtu = "active_mtu",
                longest_message = "max_msg_sz", lid = "lid", link_layer = "link_layer"),
            lie!(Part as "struct ibv_sge": address = "addr", length = "length", key = "lkey"),
            lie!(Request as "struct ibv_send_wr": id = "wr_id", next = "next", parts = "sg_list", count = "num_sge",
                what = "opcode", flags = "send_flags", remote_address = "wr.rdma.remote_addr",
                remote_key = "wr.rdma.rkey"),
            lie!(Completion as "struct ibv_wc": id = "wr_id", status = "status", vendor = "vendor_err"),
        ]
        .concat()
    }

    fn attributes() -> Vec<String> {
        [
            lie!(QueuePairWish as "struct ibv_qp_init_attr": send = "send_cq", receive = "recv_cq", shared = "srq",
                capacity = "cap", kind = "qp_type", signal_all = "sq_sig_all"),
            lie!(Capacity as "struct ibv_qp_cap": sends = "max_send_wr", receives = "max_recv_wr",
                send_parts = "max_send_sge", receive_parts = "max_recv_sge"),
            lie!(Address as "struct ibv_ah_attr": gid = "grh.dgid", own_index = "grh.sgid_index",
                hops = "grh.hop_limit", lid = "dlid", is_global = "is_global", port = "port_num"),
            lie!(QueuePairAttributes as "struct ibv_qp_attr": state = "qp_state", path_mtu = "path_mtu",
                receive_number = "rq_psn", send_number = "sq_psn", peer = "dest_qp_num", access = "qp_access_flags",
                address = "ah_attr", key = "pkey_index", reads_at_once = "max_rd_atomic",
                reads_taken = "max_dest_rd_atomic", not_ready_timer = "min_rnr_timer", port = "port_num",
                timeout = "timeout", retries = "retry_cnt", not_ready_retries = "rnr_retry"),
        ]
        .concat()
    }

    fn sizes() -> Vec<String> {
        let mut sizes = equal!(
            "sizeof(struct ibv_qp_init_attr)" = size_of::<QueuePairWish>(),
            "sizeof(struct ibv_ah_attr)" = size_of::<Address>(),
            "sizeof(struct ibv_qp_attr)" = size_of::<QueuePairAttributes>(),
            "sizeof(struct ibv_sge)" = size_of::<Part>(),
            "sizeof(struct ibv_send_wr)" = size_of::<Request>(),
            "sizeof(struct ibv_wc)" = size_of::<Completion>(),
            "sizeof(union ibv_gid)" = size_of::<Gid>(),
        );
        sizes.push(format!("sizeof(struct ibv_port_attr) <= {}", size_of::<PortAttributes>()));
        sizes
    }

    fn constants() -> Vec<String> {
        let plain = equal!(
            "IBV_WC_SUCCESS" = SUCCESS,
            "IBV_WR_RDMA_WRITE" = RDMA_WRITE,
            "IBV_SEND_SIGNALED" = SIGNALED,
            "IBV_QPT_RC" = RELIABLE,
            "IBV_ACCESS_LOCAL_WRITE" = LOCAL_WRITE,
            "IBV_ACCESS_REMOTE_WRITE" = REMOTE_WRITE,
            "IBV_PORT_ACTIVE" = ACTIVE,
            "IBV_LINK_LAYER_ETHERNET" = ETHERNET,
            "IBV_QPS_INIT" = INIT,
            "IBV_QPS_RTR" = READY_TO_RECEIVE,
            "IBV_QPS_RTS" = READY_TO_SEND,
        );
        let masks = equal!(
            "IBV_QP_STATE" = mask::STATE,
            "IBV_QP_ACCESS_FLAGS" = mask::ACCESS,
            "IBV_QP_PKEY_INDEX" = mask::PKEY,
            "IBV_QP_PORT" = mask::PORT,
            "IBV_QP_AV" = mask::ADDRESS,
            "IBV_QP_PATH_MTU" = mask::PATH_MTU,
            "IBV_QP_TIMEOUT" = mask::TIMEOUT,
            "IBV_QP_RETRY_CNT" = mask::RETRIES,
            "IBV_QP_RNR_RETRY" = mask::NOT_READY_RETRIES,
            "IBV_QP_RQ_PSN" = mask::RECEIVE_NUMBER,
            "IBV_QP_MAX_QP_RD_ATOMIC" = mask::READS_AT_ONCE,
            "IBV_QP_MIN_RNR_TIMER" = mask::NOT_READY_TIMER,
            "IBV_QP_SQ_PSN" = mask::SEND_NUMBER,
            "IBV_QP_MAX_DEST_RD_ATOMIC" = mask::READS_TAKEN,
            "IBV_QP_DEST_QPN" = mask::PEER,
        );
        [plain, masks].concat()
    }

    /// What the compiler says against the claims; nothing when all of them hold.
    fn objections(claims: &[String]) -> String {
        let claims: String = claims.iter().map(|claim| format!("_Static_assert({claim}, \"{claim}\");\n")).collect();
        let text = format!("#include <stddef.h>\n#include <infiniband/verbs.h>\n{claims}");
        let mut compiler = Command::new("cc")
            .args(["-std=gnu11", "-fsyntax-only", "-x", "c", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        compiler.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let done = compiler.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { String::new() } else { said }
    }

    #[test]
    fn every_field_lies_where_the_header_of_libibverbs_has_it() {
        if !std::fs::exists("/usr/include/infiniband/verbs.h").unwrap() {
            let test = "every_field_lies_where_the_header_of_libibverbs_has_it";
            return muster_skip::skip(test, muster_skip::Lacks::Tool, "infiniband/verbs.h (libibverbs-dev)");
        }
        let claims = [objects(), attributes(), sizes(), constants()].concat();
        assert_eq!(objections(&claims), "");
        let wrong = equal!("sizeof(struct ibv_wc)" = 52);
        assert!(objections(&wrong).contains("static assertion failed"), "the compiler is asked");
    }
}
