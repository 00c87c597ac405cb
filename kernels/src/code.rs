//! Which compiled kernels are shipped, and which of them a device loads.
//!
//! The files under `prebuilt` are outputs of `build.py`, which also holds them to their sources.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// Compiled kernels of one source file.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// That of its source file, such as `gemm`.
    pub name: &'static str,
    packed: &'static [u8],
}

impl Module {
    /// Machine code, or PTX with the NUL that the driver expects.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        let mut image = Vec::new();
        // What was packed when this was built can be read; less than all of it is a module that no driver takes.
        let _whole = ZlibDecoder::new(self.packed).read_to_end(&mut image);
        image
    }
}

/// Modules that one kind of device loads.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Engine in the identity of every metric: results of machine code and of just-in-time code are never compared.
    pub engine: &'static str,
    /// All modules.
    pub modules: &'static [Module],
}

macro_rules! target {
    ($suffix:literal $(, $more:literal)?) => {
        Target {
            engine: "own",
            modules: &[
                target!(@ "memory", $suffix),
                target!(@ "burn", $suffix),
                target!(@ "gemm", $suffix),
                target!(@ "peer", $suffix),
                target!(@ "tape", $suffix),
                target!(@ "norm", $suffix),
                target!(@ "image", $suffix),
                target!(@ "product", $suffix),
                target!(@ "attention", $suffix),
                target!(@ "function", $suffix),
                target!(@ "convolve", $suffix),
                $(target!(@ $more, $suffix),)?
            ],
        }
    };
    (@ $name:literal, $suffix:literal) => {
        Module { name: $name, packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".", $suffix, ".z")) }
    };
}

const SM_80: Target = target!("sm_80.cubin");
const SM_90: Target = target!("sm_90a.cubin", "wgmma");
const SM_100: Target = target!("sm_100a.cubin");
/// What every device from sm_80 on can compile for itself.
pub const PTX: Target = Target { engine: "own-ptx", ..target!("compute_80.ptx") };

/// Which code computed something, that of the modules called `modules`: results of the same work are alike only for the same
/// code on the same architecture, and where the driver compiled it, by the same driver.
#[must_use]
pub fn identity(engine: &str, (label, modules): (&str, &[&str]), (major, minor): (i32, i32), driver: i32) -> String {
    let target = machine_code((major, minor)).filter(|target| target.engine == engine).unwrap_or(PTX);
    let images = target.modules.iter().filter(|known| modules.contains(&known.name));
    // FNV-1a: it tells our own files apart, not forgeries.
    let digest = images
        .flat_map(Module::image)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let compiler = if engine == PTX.engine { format!(" driver {driver}") } else { String::new() };
    format!("{engine} {label} {digest:016x} sm_{major}{minor}{compiler}")
}

/// Machine code for a compute capability, if any is shipped.
#[must_use]
pub const fn machine_code(capability: (i32, i32)) -> Option<Target> {
    match capability {
        (8, _) => Some(SM_80),
        (9, 0) => Some(SM_90),
        (10, 0) => Some(SM_100),
        _ => None,
    }
}
