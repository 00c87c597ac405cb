//! Packs the committed kernels: the worker that carries them is sent to every node.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=prebuilt");
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    for entry in fs::read_dir("prebuilt")? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let mut image = fs::read(&path)?;
        if name.ends_with(".ptx") {
            // The driver expects the end of a C string.
            image.push(0);
        }
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&image)?;
        fs::write(Path::new(&out).join(format!("{name}.z")), packed.finish()?)?;
    }
    Ok(())
}
