//! The GPU worker that muster-probe carries and starts.

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    muster_gpu::worker::main(&args)
}
