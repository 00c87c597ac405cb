//! What to do next, by category.

use super::Category;

/// The next action.
#[must_use]
pub fn action(category: Category, node: Option<&str>) -> String {
    let it = node.unwrap_or("the named machine");
    match category {
        Category::HardwareCritical => format!("Drain {it}, restart the job without it, and have the named part reset or replaced before it returns."),
        Category::DistributedError => format!("Restart the job without {it}; check its kernel log, its health checks and then its links: most such losses are the host, not the network."),
        Category::HangNotLaunched => format!("Take the Python stack of the named rank (py-spy dump) before you kill the job; if it happens on {it} again with another program, drain the node."),
        Category::HangNotStarted => format!("Restart the job without {it}, then run the GPU checks on it (muster run cbd): its GPU did not run what was enqueued."),
        Category::HangInNetwork => format!("Restart the job without {it}, then test its links in pairs (muster pairs) and check the cable of the named adapter."),
        Category::UserBug => "Give this to the owner of the program; no machine needs to be drained.".to_owned(),
        Category::Storage => "Bring the named storage back, then restart the job from its last checkpoint; no machine needs to be drained.".to_owned(),
        Category::HostStall => format!("Look at {it}: memory, processors and blocked processes; restart the job without it if it does not recover."),
        Category::DataloaderStall => format!("Look at the data loader and the storage path of {it}; the GPUs and the network waited for it."),
        Category::SlowGpu => format!("Drain {it} when the job allows, then check clocks, power and temperature of the named GPU."),
        Category::SlowLink => format!("Check the cable and the port of the named adapter on {it} (muster pairs), then move the job off it."),
        Category::ProcessExited => format!("Find out why the named process ended on {it} (exit code, out-of-memory killer, core dump); restart the job if it was no fault of the program."),
        Category::None => "Restart the job as it is when it is wanted; no machine needs to be drained.".to_owned(),
        Category::Undecided => "Collect what is missing (see not looked at), or run the checks on all nodes of the job, before you drain anything.".to_owned(),
    }
}
